//go:build unix

package install

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// own gives a file the owner of the one it is to replace; where there was none,
// that of the folder: root may install for somebody else.
func own(f *os.File, old fs.FileInfo) error {
	if old == nil {
		info, err := os.Stat(filepath.Dir(f.Name()))
		if err != nil {
			return err
		}
		old = info
		if os.Geteuid() != 0 {
			return nil
		}
	}
	is, err := f.Stat()
	if err != nil {
		return err
	}
	a, ok := old.Sys().(*syscall.Stat_t)
	b, too := is.Sys().(*syscall.Stat_t)
	if !ok || !too || a.Uid == b.Uid && a.Gid == b.Gid {
		return nil
	}
	if err := f.Chown(int(a.Uid), int(a.Gid)); err != nil {
		return fmt.Errorf("the file belongs to user %d and group %d, and would not any more: %w; install as that user", a.Uid, a.Gid, err)
	}
	return nil
}

// Foreign reports whether what root writes into a folder would be in the way of
// somebody else, whose folder it is: with sudo, homes are others'.
func Foreign(dir string) bool {
	for dir != "" && os.Geteuid() == 0 {
		if info, err := os.Stat(dir); err == nil {
			s, ok := info.Sys().(*syscall.Stat_t)
			return ok && s.Uid != 0
		}
		if dir == filepath.Dir(dir) {
			return false
		}
		dir = filepath.Dir(dir)
	}
	return false
}

// links is how many names a file has.
func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) //nolint:unconvert // it is smaller on other systems
	}
	return 1
}
