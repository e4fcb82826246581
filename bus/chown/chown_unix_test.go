//go:build unix

package chown_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/bus/chown"
)

const (
	alice = 65534
	bob   = 65533
)

// TestInstead writes as root into the place of what belongs to others.
func TestInstead(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can give files away, so that those it replaces keep their owners stays untested")
	}
	for name, c := range map[string]struct {
		folder uint32
		old    func(path string) error
		want   uint32
	}{
		"another user's in a shared folder": {0, func(path string) error {
			return errors.Join(file(bob)(path), os.Chmod(filepath.Dir(path), 0o777|fs.ModeSticky))
		}, 0},
		"nothing":                            {alice, nil, alice},
		"a file of the folder's owner":       {alice, file(alice), alice},
		"a file of another user":             {alice, file(bob), bob},
		"another user's in a folder of root": {0, file(bob), bob},
		"a file of root":                     {alice, file(0), alice},
		"a link of another user": {alice, func(path string) error {
			return os.Symlink("/etc/passwd", path)
		}, alice},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a.creds")
			if c.old != nil {
				must(t, c.old(path))
			}
			must(t, os.Chown(dir, int(c.folder), int(c.folder)))
			f, err := os.CreateTemp(dir, "new")
			must(t, err)
			defer f.Close()
			must(t, chown.Instead(f, path))
			is, err := f.Stat()
			must(t, err)
			if got := is.Sys().(*syscall.Stat_t); got.Uid != c.want || got.Gid != c.want {
				t.Errorf("it belongs to user %d and group %d instead of %d", got.Uid, got.Gid, c.want)
			}
		})
	}
}

// file is an old file of that user.
func file(uid int) func(path string) error {
	return func(path string) error {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		return os.Chown(path, uid, uid)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A link to a folder on another disk is no volume: other users of this machine may reach the folder.
func TestALinkToAnotherDiskIsNoMountPoint(t *testing.T) {
	if !chown.MountPoint("/dev/shm") {
		t.Skip("NOT TESTED: /dev/shm is not another disk")
	}
	dir, err := os.MkdirTemp("/dev/shm", "owner") //nolint:usetesting // it must be on another disk
	if err != nil {
		t.Skipf("NOT TESTED: /dev/shm takes no folder: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	link := filepath.Join(t.TempDir(), "data")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, link} {
		if chown.MountPoint(name) {
			t.Errorf("%s is a mount point", name)
		}
	}
}
