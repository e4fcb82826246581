//go:build unix

package realm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// own gives what root has just made in a folder to whom the folder belongs: a broker that
// runs as another user could not read it, and would go on by what it knew before.
//
// It is for what nobody else can have put there: whoever owns the folder may have a link
// in it to a file that is not his.
func own(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	folder, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	is, err := f.Stat()
	if err != nil {
		return err
	}
	a, ok := folder.Sys().(*syscall.Stat_t)
	b, too := is.Sys().(*syscall.Stat_t)
	if !ok || !too || a.Uid == b.Uid && a.Gid == b.Gid {
		return nil
	}
	if err := f.Chown(int(a.Uid), int(a.Gid)); err != nil {
		return fmt.Errorf("the folder belongs to user %d and group %d, who could not read it: %w; do it as that user", a.Uid, a.Gid, err)
	}
	return nil
}

// ownFolder is own for a folder. A link that took its place meanwhile is not followed.
func ownFolder(dir string) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(own(f), f.Close())
}
