package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"
)

// Each case has events at certain times, and the expected time of reading the file.
func TestAFileIsReadAfterItsFolderIsQuiet(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		events []time.Duration
		every  time.Duration
		want   time.Duration
	}{
		{"one event is followed by a quiet period", []time.Duration{10 * ms}, pollWatched, 1010 * ms},
		{"a file that is written in pieces is read once", []time.Duration{10 * ms, 800 * ms, 1600 * ms}, pollWatched, 2600 * ms},
		{"the wait ends in a folder that is never quiet", ticks(100*ms, 50), pollWatched, 5100 * ms},
		{"the file is read now and then without events", nil, pollWatched, pollWatched},
		{"a file that cannot be watched is read often", nil, pollUnwatched, pollUnwatched},
		{"an event ends the wait for the next read", []time.Duration{pollUnwatched - 10*ms}, pollUnwatched, pollUnwatched + 990*ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				events := make(chan fsnotify.Event, len(c.events))
				start := time.Now()
				go func() {
					for _, at := range c.events {
						select {
						case <-time.After(at - time.Since(start)):
							events <- fsnotify.Event{}
						case <-ctx.Done():
						}
					}
				}()
				(&folderWatch{events: events, every: c.every}).awaitChange(ctx)
				if got := time.Since(start); got != c.want {
					t.Errorf("read after %v; want %v", got, c.want)
				}
			})
		})
	}
}

// ticks returns n times at an interval.
func ticks(every time.Duration, n int) (at []time.Duration) {
	for i := range n {
		at = append(at, time.Duration(i+1)*every)
	}
	return at
}

func TestLostEventsAreAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := make(chan error, 1)
		lost <- errors.New("queue overflow")
		start := time.Now()
		(&folderWatch{errors: lost, every: pollWatched}).awaitChange(t.Context())
		if got := time.Since(start); got != quiet {
			t.Errorf("read after %v", got)
		}
	})
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	watchFile(ctx, filepath.Join(t.TempDir(), "hooks.yaml"), func() { looks++; cancel() })
	if looks != 1 {
		t.Errorf("%d reads", looks)
	}
}

func TestFolders(t *testing.T) {
	root := realPath(t, t.TempDir())
	mkdir(t, root, "etc/hooks/..v1", "opt/release", "opt/other")
	link(t, "..v1", root, "etc/hooks/..data")
	link(t, "..data/hooks.yaml", root, "etc/hooks/hooks.yaml")
	link(t, filepath.Join(root, "opt/release"), root, "current")
	link(t, "loop", root, "loop")
	for _, c := range []struct {
		name, path string
		want       []string
	}{
		{"a plain file", "opt/other/hooks.yaml", []string{"opt/other"}},
		{"a missing file", "opt/gone/hooks.yaml", []string{"opt/gone"}},
		{"links as Kubernetes makes them", "etc/hooks/hooks.yaml", []string{"etc/hooks", "etc/hooks/..v1"}},
		{"a folder that is a link", "current/hooks.yaml", []string{"", "opt/release"}},
		{"a link to itself", "loop/hooks.yaml", []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			for _, dir := range c.want {
				want = append(want, filepath.Join(root, dir))
			}
			got := folders(filepath.Join(root, c.path))
			if c.path == "loop/hooks.yaml" { // the link at which it ends does not matter
				got = got[:1]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The test does on a real file system what editors, Kubernetes and operators do.
func TestAFileIsWatched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
	}{
		{"the file is overwritten", func(t *testing.T, dir string) { put(t, dir, "hooks.yaml", "new") }},
		{"an editor replaces the file", func(t *testing.T, dir string) {
			put(t, dir, "hooks.yaml~", "new")
			rename(t, dir, "hooks.yaml~", "hooks.yaml")
		}},
		{"it is removed and made again", func(t *testing.T, dir string) {
			remove(t, dir, "hooks.yaml")
			put(t, dir, "hooks.yaml", "new")
		}},
		{"Kubernetes swaps the link to the folder", func(t *testing.T, dir string) {
			mkdir(t, dir, "..v2")
			put(t, dir, "..v2/hooks.yaml", "new")
			link(t, "..v2", dir, "..tmp")
			rename(t, dir, "..tmp", "..data")
		}},
		{"the folder is replaced", func(t *testing.T, dir string) {
			rename(t, dir, "", "../before")
			mkdir(t, dir, "")
			put(t, dir, "hooks.yaml", "new")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "conf")
			mkdir(t, dir, "..v1")
			put(t, dir, "..v1/hooks.yaml", "old")
			link(t, "..v1", dir, "..data")
			link(t, "..data/hooks.yaml", dir, "hooks.yaml")
			looks := watched(t, filepath.Join(dir, "hooks.yaml"))
			<-looks // the watch has begun
			c.change(t, dir)
			await(looks, "new")
		})
	}
}

// The test removes the folder until the watch has noticed.
func TestAWatchOutlivesItsFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "conf")
	mkdir(t, dir, "")
	put(t, dir, "hooks.yaml", "old")
	looks := watched(t, filepath.Join(dir, "hooks.yaml"))
	<-looks
	remove(t, dir, "")
	await(looks, "")
	mkdir(t, dir, "")
	put(t, dir, "hooks.yaml", "new")
	await(looks, "new")
	put(t, dir, "hooks.yaml", "newer") // the watch has begun again
	await(looks, "newer")
}

// await waits until the file has the content want.
func await(looks <-chan string, want string) {
	for {
		if <-looks == want {
			return
		}
	}
}

// watched returns the content of a file at each read, until the test ends.
func watched(t *testing.T, path string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	looks, ended := make(chan string), make(chan struct{})
	go func() {
		defer close(ended)
		watchFile(ctx, path, func() {
			data, _ := os.ReadFile(path) // empty if it is missing
			select {
			case looks <- string(data):
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return looks
}

func realPath(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func mkdir(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func link(t *testing.T, target, dir, name string) {
	t.Helper()
	must(t, os.Symlink(target, filepath.Join(dir, name)))
}

func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	must(t, os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)))
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	must(t, os.RemoveAll(filepath.Join(dir, name)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
