package certs

import (
	"cmp"
	"log/slog"
	"os"
	"sync"
)

// A followed value is read from files, again after each change. A change that cannot be read is ignored.
type followed[T any] struct {
	paths []string
	read  func() (T, error)
	log   *slog.Logger

	mu    sync.Mutex    // guards the following fields
	seen  []os.FileInfo // the files of value, or of the last error
	value T
}

// follow reads the value for the first time, and returns an error if that fails.
func follow[T any](paths []string, read func() (T, error), log *slog.Logger) (*followed[T], error) {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	f := &followed[T]{paths: paths, read: read, log: log, seen: stats(paths)}
	var err error
	f.value, err = read()
	return f, err
}

// get returns the value. It checks the files each time, which costs little beside a handshake, and
// needs no watcher.
func (f *followed[T]) get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := stats(f.paths)
	if same(now, f.seen) {
		return f.value
	}
	f.seen = now
	value, err := f.read()
	if err != nil {
		f.log.Error("the certificate files changed and cannot be used; the earlier certificates stay in use until the files change again", "error", err)
		return f.value
	}
	f.value = value
	f.log.Info("the certificate files changed; new connections use them", "files", f.paths)
	return f.value
}

// stats returns the state of files; nil for a missing one.
func stats(paths []string) []os.FileInfo {
	all := make([]os.FileInfo, len(paths))
	for i, p := range paths {
		if info, err := os.Stat(p); err == nil {
			all[i] = info
		}
	}
	return all
}

// same reports whether no file has changed.
func same(a, b []os.FileInfo) bool {
	for i := range a {
		if a[i] == nil || b[i] == nil {
			if a[i] != nil || b[i] != nil {
				return false
			}
			continue
		}
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) {
			return false
		}
	}
	return true
}
