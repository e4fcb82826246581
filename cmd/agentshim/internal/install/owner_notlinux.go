//go:build !linux

package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// asOwner runs f, which reads or writes a file. As root it follows no link of another user.
func asOwner(path string, f func() error) error {
	for dir := range foldersUp(path, "") {
		info, err := os.Lstat(dir)
		if err == nil && info.Mode().Type() == fs.ModeSymlink && Foreign(filepath.Dir(dir)) {
			return fmt.Errorf("%s is a link in another user's folder, and root does not follow it; install as that user", dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f()
}

func exchange(string, string) error { return errors.ErrUnsupported }
