package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// The times of watching a file.
const (
	// quiet is how long a folder must be unchanged before the file is read, because a file may be
	// written in pieces. maxQuiet bounds the wait in a folder that changes all the time.
	quiet    = time.Second
	maxQuiet = 5 * time.Second
	// pollUnwatched is how often a file is read that cannot be watched. pollWatched is how often
	// a watched one is read, because some file systems send no events.
	pollUnwatched = 3 * time.Second
	pollWatched   = time.Minute
	// maxLinks bounds the symbolic links that are followed, as in a kernel.
	maxLinks = 40
)

// watchFile calls changed at once, and each time that the file may have changed, until ctx ends. It
// watches folders, because editors replace the file, and Kubernetes replaces a link in its path.
// It determines the folders again before each call, and watches them before the call, so that no
// change is missed.
func watchFile(ctx context.Context, path string, changed func()) {
	for ctx.Err() == nil {
		w := watchFolders(folders(path))
		changed()
		w.awaitChange(ctx)
		w.close()
	}
}

// A folderWatch receives the events of folders.
type folderWatch struct {
	watcher *fsnotify.Watcher // nil: not supported
	events  <-chan fsnotify.Event
	errors  <-chan error
	// every bounds the wait for an event.
	every time.Duration
}

func watchFolders(dirs []string) *folderWatch {
	w := &folderWatch{every: pollWatched}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.every = pollUnwatched
		return w
	}
	w.watcher, w.events, w.errors = watcher, watcher.Events, watcher.Errors
	for _, dir := range dirs {
		if watcher.Add(dir) != nil {
			w.every = pollUnwatched
		}
	}
	return w
}

func (w *folderWatch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // the error has no consequence
	}
}

// awaitChange returns when an event was followed by a quiet period, when it is time to read the
// file without an event, or when ctx ends. An error, such as too many events, counts as an event.
func (w *folderWatch) awaitChange(ctx context.Context) {
	wait := time.NewTimer(w.every)
	defer wait.Stop()
	var first time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
			return
		case <-w.events:
		case <-w.errors: //nolint:errcheck // the file is read after any error
		}
		if first.IsZero() {
			first = time.Now()
		}
		wait.Reset(min(quiet, maxQuiet-time.Since(first)))
	}
}

// folders returns the folders in which a change can replace the file at path: that of the file, and
// those of all symbolic links in its path.
func folders(path string) []string {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	var dirs []string
	for range maxLinks {
		link, rest := firstLink(path)
		if link == "" {
			break
		}
		dirs = append(dirs, filepath.Dir(link))
		target, err := os.Readlink(link)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		path = filepath.Join(target, rest)
	}
	dirs = append(dirs, filepath.Dir(path))
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// firstLink returns the first part of path that is a symbolic link, and the rest; empty: no part is.
func firstLink(path string) (link, rest string) {
	for i, c := range path + string(filepath.Separator) {
		if c != filepath.Separator || i == 0 {
			continue
		}
		if info, err := os.Lstat(path[:i]); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return path[:i], strings.TrimPrefix(path[i:], string(filepath.Separator))
		}
	}
	return "", ""
}
