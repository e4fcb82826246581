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

// TestAFolderSettles tells events at certain times, and expects the time at
// which the file is looked at.
func TestAFolderSettles(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		events []time.Duration
		every  time.Duration
		want   time.Duration
	}{
		{"one event is looked at when it is quiet", []time.Duration{10 * ms}, anyway, 1010 * ms},
		{"a file that is written in pieces is looked at once", []time.Duration{10 * ms, 800 * ms, 1600 * ms}, anyway, 2600 * ms},
		{"in a folder that is never quiet the wait ends all the same", ticks(100*ms, 50), anyway, 5100 * ms},
		{"without events it is time to look now and then", nil, anyway, anyway},
		{"what cannot be watched is looked at often", nil, blind, blind},
		{"an event ends the wait for the next look", []time.Duration{blind - 10*ms}, blind, blind + 990*ms},
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
				(&folderWatch{events: events, every: c.every}).settled(ctx)
				if got := time.Since(start); got != c.want {
					t.Errorf("looked at after %v; want %v", got, c.want)
				}
			})
		})
	}
}

// ticks are n times, one every so often.
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
		(&folderWatch{errors: lost, every: anyway}).settled(t.Context())
		if got := time.Since(start); got != quiet {
			t.Errorf("looked at after %v", got)
		}
	})
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	watchFile(ctx, filepath.Join(t.TempDir(), "hooks.yaml"), func() { looks++; cancel() })
	if looks != 1 {
		t.Errorf("%d looks", looks)
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
		{"a plain file is watched in its folder", "opt/other/hooks.yaml", []string{"opt/other"}},
		{"a file that is not there, too", "opt/gone/hooks.yaml", []string{"opt/gone"}},
		{"of links, as Kubernetes makes them, each is watched", "etc/hooks/hooks.yaml", []string{"etc/hooks", "etc/hooks/..v1"}},
		{"a folder that is a link is watched where the link is", "current/hooks.yaml", []string{"", "opt/release"}},
		{"a link to itself ends", "loop/hooks.yaml", []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			for _, dir := range c.want {
				want = append(want, filepath.Join(root, dir))
			}
			got := folders(filepath.Join(root, c.path))
			if c.path == "loop/hooks.yaml" { // where it is given up does not matter
				got = got[:1]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAFileIsWatched does on a real file system what editors, Kubernetes and
// operators do.
func TestAFileIsWatched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
	}{
		{"the file is written over", func(t *testing.T, dir string) { put(t, dir, "hooks.yaml", "new") }},
		{"an editor puts a new file in its place", func(t *testing.T, dir string) {
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
		{"the folder is moved away and another one made", func(t *testing.T, dir string) {
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
			<-looks // the watch stands
			c.change(t, dir)
			await(looks, "new")
		})
	}
}

// TestAWatchOutlivesItsFolder removes the folder until the watch has noticed.
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
	put(t, dir, "hooks.yaml", "newer") // it watches again
	await(looks, "newer")
}

// await waits until the file says want. A wait in vain ends with the tests.
func await(looks <-chan string, want string) {
	for {
		if <-looks == want {
			return
		}
	}
}

// watched is what a file says each time that it is looked at, until the test ends.
func watched(t *testing.T, path string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	looks, ended := make(chan string), make(chan struct{})
	go func() {
		defer close(ended)
		watchFile(ctx, path, func() {
			data, _ := os.ReadFile(path) // nothing, if it is not there
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
