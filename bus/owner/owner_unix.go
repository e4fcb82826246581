//go:build unix

package owner

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Like gives a file to whom another one belongs.
func Like(f *os.File, other fs.FileInfo) error {
	is, err := f.Stat()
	if err != nil {
		return err
	}
	a, ok := other.Sys().(*syscall.Stat_t)
	b, too := is.Sys().(*syscall.Stat_t)
	if !ok || !too || a.Uid == b.Uid && a.Gid == b.Gid {
		return nil
	}
	if err := f.Chown(int(a.Uid), int(a.Gid)); err != nil {
		return fmt.Errorf("it is user %d's, of group %d, and would not be any more: %w; do it as that user", a.Uid, a.Gid, err)
	}
	return nil
}

func roots(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || s.Uid == 0
}

// OpenFolder opens a folder that was just made. A link that took its place meanwhile is not
// followed.
func OpenFolder(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
}
