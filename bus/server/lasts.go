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

// lastsFile says, in an account's folder, how far each of its streams reached: a line has
// the stream's name and its last sequence. Lines of people's choice can be deleted. After
// the server stopped, a line also has the state of the server's index and each block with
// its size.
const lastsFile = "lasts"

// notedEvery is how often that is written, if it changed.
const notedEvery = time.Second

// A last is how far a stream reached, of which everything is on disk.
type last struct {
	sequence uint64
	// index and files are what the server left on disk when it stopped; nil: it still runs,
	// or was killed.
	index string
	files map[string]int64
}

// lasts are those of an account, by stream.
type lasts map[string]last

// readLasts reads the file in an account's folder; nil: there is none, as before this was written.
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

// running is what counts of it as soon as a server changes blocks.
func (all lasts) running() lasts {
	now := make(lasts, len(all))
	for name, l := range all {
		now[name] = last{sequence: l.sequence}
	}
	return now
}

// A notary writes down how far the streams of a server reached. What it writes is true
// whenever the process is killed, or the disk loses what was not synced.
type notary struct {
	nats  *server.Server
	dir   string // the data directory
	store string // where the accounts' folders are
	sync  time.Duration
	log   *slog.Logger

	mu      sync.Mutex // guards what follows, and is held while JetStream starts again
	written map[string]string
	// accounts are those that were last written to have streams.
	accounts []string
	said     string
	stop     context.CancelFunc
	done     sync.WaitGroup
}

// begin has it write until it is closed.
func (n *notary) begin() {
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
			if n.sync > 0 { // what was there two intervals ago is on disk by now
				now, before = before, now
			}
			n.say(n.write(now))
			n.mu.Unlock()
		}
	})
}

// look asks the server how far its streams reach, by account; nil: it does not know now. One
// that could not write counts what it failed to write.
func (n *notary) look() map[string]lasts {
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

// write writes what is not on disk yet.
func (n *notary) write(all map[string]lasts) error {
	for account, of := range all {
		text, dir := of.String(), filepath.Join(n.store, account)
		if text == n.written[account] {
			continue
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			continue // nothing was stored yet
		}
		if err := realm.WriteFile(filepath.Join(dir, lastsFile), []byte(text)); err != nil {
			return err
		}
		n.written[account] = text
	}
	return n.writeAccounts(all)
}

// say logs what keeps it from writing, once. What was written before stays true.
func (n *notary) say(err error) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != n.said && err != nil {
		n.log.Warn("cannot store the last sequences of the streams", "error", err)
	}
	n.said = said
}

// close ends it, before the server stops, and returns how far all streams reach. A nil one
// does nothing.
func (n *notary) close() map[string]lasts {
	if n == nil {
		return nil
	}
	n.stop()
	n.done.Wait()
	return n.look()
}

// leave writes down, when the server has stopped, which blocks it left.
func (n *notary) leave(all map[string]lasts) {
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
