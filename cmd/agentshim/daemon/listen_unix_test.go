//go:build unix

package daemon

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// short returns a folder whose path is short enough for a socket.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // the names of tests are too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// The daemon replaces only a dead socket. Other files at the path stay unchanged.
func TestADaemonDeletesNothingAtItsPathButADeadSocket(t *testing.T) {
	live := func(path string, t *testing.T) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	file := func(path string, t *testing.T) {
		if err := os.WriteFile(path, []byte("a letter"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		there func(path string, t *testing.T)
		says  string // empty: it listens
	}{
		"nothing":  {func(string, *testing.T) {}, ""},
		"a letter": {file, "is not a socket"},
		"a folder": {func(path string, t *testing.T) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "is not a socket"},
		"a link to a letter": {func(path string, t *testing.T) {
			file(path+"-real", t)
			if err := os.Symlink(path+"-real", path); err != nil {
				t.Fatal(err)
			}
		}, "is not a socket"},
		"a program's socket": {live, "another program serves"},
		"a dead socket": {func(path string, t *testing.T) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(short(t), "x")
			c.there(path, t)
			before, _ := os.Lstat(path)
			l, free, err := Listen(path)
			if c.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				defer free()
				defer l.Close()
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
				t.Errorf("it is not what it was: %v", err)
			}
		})
	}
}

// The daemon does not follow a symbolic link in the place of the lock.
func TestTheLockFollowsNoLink(t *testing.T) {
	dir := short(t)
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "x.lock")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Listen(filepath.Join(dir, "x")); err == nil {
		t.Error("it listens")
	}
	if _, err := os.Lstat(filepath.Join(dir, "elsewhere")); err == nil {
		t.Error("a file was made where the link leads")
	}
}
