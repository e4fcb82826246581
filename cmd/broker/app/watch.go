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

// How a file is watched.
const (
	// quiet is how long nothing must have happened before a file is looked at:
	// whoever writes it may write it in pieces. mostQuiet is how long that is
	// waited for in a folder where something happens all the time.
	quiet     = time.Second
	mostQuiet = 5 * time.Second
	// blind is how often a file is looked at that cannot be watched, and anyway
	// one that can: some file systems never tell.
	blind  = 3 * time.Second
	anyway = time.Minute
	// maxLinks is how many symbolic links are followed, as a kernel does.
	maxLinks = 40
)

// watchFile calls changed at once, and again whenever the file may have
// changed, until ctx ends. It watches folders and not the file: editors put a
// new file in the place of the old one, and Kubernetes another link in the
// place of a folder. Each round looks up anew which folders those are, and
// watches them before it calls changed, so that no change is missed.
func watchFile(ctx context.Context, path string, changed func()) {
	for ctx.Err() == nil {
		w := watchFolders(folders(path))
		changed()
		w.settled(ctx)
		w.close()
	}
}

// A folderWatch hears of what happens in folders.
type folderWatch struct {
	watcher *fsnotify.Watcher // nil: there can be none
	events  <-chan fsnotify.Event
	errors  <-chan error
	// every is how long at most to wait for an event.
	every time.Duration
}

func watchFolders(dirs []string) *folderWatch {
	w := &folderWatch{every: anyway}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.every = blind
		return w
	}
	w.watcher, w.events, w.errors = watcher, watcher.Events, watcher.Errors
	for _, dir := range dirs {
		if watcher.Add(dir) != nil {
			w.every = blind
		}
	}
	return w
}

func (w *folderWatch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // there is nothing to be done about it
	}
}

// settled returns when something happened and it is quiet again, when it is time
// to look anyway, or when ctx ends. That events were too many is one, too.
func (w *folderWatch) settled(ctx context.Context) {
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
		case <-w.errors: //nolint:errcheck // whatever it is, the file is looked at
		}
		if first.IsZero() {
			first = time.Now()
		}
		wait.Reset(min(quiet, mostQuiet-time.Since(first)))
	}
}

// folders are those in which something happens when the file at path becomes
// another one: the file's own, and those of all the links on the way to it.
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

// firstLink is the first part of path that is a symbolic link, and what comes
// after it; empty: there is none.
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
