package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus/server/internal/blocks"
	"github.com/hookfabric/hookfabric/bus/server/realm"
)

// lastsFile has the last sequences of an account's streams, in the account's folder: a line per stream with
// its name and sequence. After a stop of the server a line also has the state of the server's index and the
// size of each block. An operator may delete lines.
const lastsFile = "lasts"

// notedEvery is the interval at which changes are written.
const notedEvery = time.Second

// A last is the sequence up to which a stream is on disk.
type last struct {
	sequence uint64
	// index and files are the files that the server left when it stopped; nil: it runs, or was
	// killed.
	index string
	files map[string]int64
}

// lasts are the last sequences of an account, by stream.
type lasts map[string]last

// readLasts reads the file in an account's folder; nil: there is no file, as in earlier releases.
func readLasts(account string) (lasts, error) {
	path := filepath.Join(account, lastsFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make(lasts)
	for line := range strings.Lines(string(data)) {
		name, l, err := readLast(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("%s is damaged: %w in the line %.80q; restore the data directory from a backup, or delete that file if all streams are intact", path, err, line)
		}
		all[name] = l
	}
	return all, nil
}

func readLast(words []string) (name string, l last, err error) {
	if len(words) < 2 {
		return "", l, errors.New("there is no sequence")
	}
	if l.sequence, err = strconv.ParseUint(words[1], 10, 64); err != nil || len(words) == 2 {
		return words[0], l, err
	}
	l.index, l.files = words[2], make(map[string]int64)
	for _, word := range words[3:] {
		file, size, _ := strings.Cut(word, ":")
		if l.files[file], err = strconv.ParseInt(size, 10, 64); err != nil {
			return "", l, err
		}
	}
	return words[0], l, nil
}

func (all lasts) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		l := all[name]
		fmt.Fprintf(&b, "%s %d", name, l.sequence)
		if l.files != nil {
			fmt.Fprintf(&b, " %s", l.index)
			for _, file := range slices.Sorted(maps.Keys(l.files)) {
				fmt.Fprintf(&b, " %s:%d", file, l.files[file])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// running returns the lasts without the files, which are outdated as soon as a server runs.
func (all lasts) running() lasts {
	now := make(lasts, len(all))
	for name, l := range all {
		now[name] = last{sequence: l.sequence}
	}
	return now
}

// A sequenceLog stores the last sequences of a server's streams. The stored sequences are on disk, also if
// the process is killed or the disk loses writes that were not synced.
type sequenceLog struct {
	nats  *server.Server
	dir   string // the data directory
	store string // the folder of the accounts
	sync  time.Duration
	log   *slog.Logger
	probe probe[map[string]lasts]

	mu      sync.Mutex // guards the following fields, and is held while JetStream restarts
	written map[string]string
	// accounts are the accounts with streams in the last file.
	accounts []string
	said     string
	stop     context.CancelFunc
	done     sync.WaitGroup
}

// begin writes at intervals until close.
func (n *sequenceLog) begin() {
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	n.done.Go(func() {
		tick := time.NewTicker(max(notedEvery, 2*n.sync))
		defer tick.Stop()
		var before map[string]lasts
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			n.mu.Lock()
			now := n.look()
			if n.sync > 0 { // the state of two intervals ago is synced by now
				now, before = before, now
			}
			n.say(n.write(now))
			n.mu.Unlock()
		}
	})
}

// look returns the last sequences of the server's streams by account; nil: unknown. A server that could not
// write counts messages that it failed to write.
func (n *sequenceLog) look() map[string]lasts {
	all, _ := n.probe.run(n.read)
	return all
}

// read is look without a time limit.
func (n *sequenceLog) read() map[string]lasts {
	info, err := n.nats.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Config: true, Limit: math.MaxInt})
	if err != nil || info.Disabled || broken(n.nats) != nil {
		return nil
	}
	all := make(map[string]lasts, len(info.AccountDetails))
	for _, a := range info.AccountDetails {
		of := make(lasts, len(a.Streams))
		for _, st := range a.Streams {
			if st.Config.Storage == server.FileStorage {
				of[st.Name] = last{sequence: st.State.LastSeq}
			}
		}
		all[a.Id] = of
	}
	return all
}

// write writes the changes.
func (n *sequenceLog) write(all map[string]lasts) error {
	for account, of := range all {
		text, dir := of.String(), filepath.Join(n.store, account)
		if text == n.written[account] {
			continue
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue // nothing is stored yet
		}
		if err := realm.WriteFile(filepath.Join(dir, lastsFile), []byte(text)); err != nil {
			return err
		}
		n.written[account] = text
	}
	return n.writeAccounts(all)
}

// say logs an error once. The file stays valid.
func (n *sequenceLog) say(err error) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != n.said && err != nil {
		n.log.Warn("cannot store the last sequences of the streams", "error", err)
	}
	n.said = said
}

// close ends the writes before the server stops, and returns the last sequences. A nil one does nothing.
func (n *sequenceLog) close() map[string]lasts {
	if n == nil {
		return nil
	}
	n.stop()
	n.done.Wait()
	return n.look()
}

// leave stores the files that a stopped server left.
func (n *sequenceLog) leave(all map[string]lasts) {
	if len(all) == 0 {
		return
	}
	for account, of := range all {
		for name, l := range of {
			on, err := blocks.List(filepath.Join(n.store, account, "streams", name))
			if err != nil {
				n.say(err)
				return
			}
			of[name] = last{sequence: l.sequence, index: "-" + on.Index, files: on.Files}
		}
	}
	n.say(n.write(all))
}
