package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus/server/internal/blocks"
	"github.com/hookfabric/hookfabric/bus/server/realm"
)

// checkStore rejects a store with missing or damaged parts before a server repairs it in its own way. The server
// truncates a block at the first unreadable record, and continues without a missing block. Freezes would be
// silently lifted, and in a cluster the other servers may take the rest for everything. A record that was
// being written when the server was killed is no damage.
func checkStore(ctx context.Context, store string) error {
	accounts, err := os.ReadDir(store)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, a := range accounts {
		if err := checkAccount(ctx, filepath.Join(store, a.Name())); err != nil {
			return err
		}
	}
	return nil
}

func checkAccount(ctx context.Context, account string) error {
	noted, err := readLasts(account)
	if err != nil {
		return err
	}
	streams, err := os.ReadDir(filepath.Join(account, "streams"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	missing := maps.Clone(noted)
	for _, e := range streams {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if strings.HasPrefix(e.Name(), ".") { // it is being deleted
			continue
		}
		l, known := noted[e.Name()]
		delete(missing, e.Name())
		if err := l.check(filepath.Join(account, "streams", e.Name()), known); err != nil {
			return err
		}
	}
	for name, l := range missing {
		if l.sequence > 0 {
			return damaged(filepath.Join(account, "streams", name), "it is missing, with all messages up to %d", l.sequence)
		}
	}
	if noted == nil {
		return nil
	}
	// The server may change blocks from now on.
	return realm.WriteFile(filepath.Join(account, lastsFile), []byte(noted.running().String()))
}

// check compares a stream's folder with its last sequence, if that is known.
func (l last) check(dir string, known bool) error {
	if blocks.Purging(dir) {
		return nil
	}
	on, err := blocks.Read(dir, filepath.Base(dir))
	if err != nil {
		return err
	}
	// left: the files are as the server left them. Another release may have run since.
	left := l.files != nil && l.index == "-"+on.Index
	switch b := on.Bad; {
	case b != nil && (left || b.After < l.sequence || !known && !b.Tail):
		return damaged(dir, "%s", b)
	case on.Last < l.sequence:
		return damaged(dir, "its last message is %d, but it had messages up to %d", on.Last, l.sequence)
	case left:
		return l.sameFiles(dir, on.Files)
	}
	return nil
}

// sameFiles compares the blocks with those that the server left.
func (l last) sameFiles(dir string, on map[string]int64) error {
	for file, size := range l.files {
		if is, there := on[file]; !there {
			return damaged(dir, "%s is missing", file)
		} else if is != size {
			return damaged(dir, "%s has %d bytes, but it had %d", file, is, size)
		}
	}
	return nil
}

// A damage is a stream's folder with missing or unreadable parts.
type damage struct{ dir, what string }

func damaged(dir, what string, args ...any) error { return &damage{dir, fmt.Sprintf(what, args...)} }

func (d *damage) Error() string { return d.dir + " is damaged: " + d.what }

// remedied adds to err what to do about a damage.
func (s *Server) remedied(err error) error {
	d, ok := errors.AsType[*damage](err)
	switch {
	case !ok:
		return err
	case s.cluster != nil:
		return fmt.Errorf("%w; move the folder %s away and start the server again: it copies the stream from the others of its cluster", err, filepath.Join(s.dir, storeFolder))
	}
	return fmt.Errorf("%w; restore the data directory from a backup; or, to continue without the messages of this stream, move that folder away and delete the line of %s in %s",
		err, filepath.Base(d.dir), filepath.Join(filepath.Dir(filepath.Dir(d.dir)), lastsFile))
}

// whole returns an error for a stream on disk that the server did not load, because its metadata is damaged. The
// server only logs that, and a process that needs the stream would create an empty one, without its freezes or
// messages. In a cluster the other servers have copies, and a leaf has no streams.
func (s *Server) whole() error {
	if s.cluster != nil || s.IsLeaf() {
		return nil
	}
	info, err := s.nats.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return fmt.Errorf("reading the state of the stream: %w", err)
	}
	for _, a := range info.AccountDetails {
		folder := filepath.Join(info.Config.StoreDir, a.Id, "streams")
		kept, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		taken := make(map[string]bool, len(a.Streams))
		for _, st := range a.Streams {
			taken[st.Name] = true
		}
		for _, e := range kept {
			if taken[e.Name()] || strings.HasPrefix(e.Name(), ".") { // loaded, or being deleted
				continue
			}
			// A stream that was being created when the server was killed is empty.
			dir := filepath.Join(folder, e.Name())
			if size, err := sizeOf(filepath.Join(dir, "msgs")); err == nil && size > 0 {
				return damaged(dir, "its metadata cannot be read")
			}
		}
	}
	return nil
}
