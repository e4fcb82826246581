// Package chown gives the files that a program writes to the user that they are for. Root
// writes files for other users, who could otherwise neither read nor replace them.
//
// Only this module imports it.
package chown

import (
	"errors"
	"os"
	"path/filepath"
)

// LikeFolder gives a file that root has just made to the owner of its folder. Files of other users stay as they are.
//
// Use it only for a file that no other user can have put there, because the owner of a folder may put a link to a
// foreign file there.
func LikeFolder(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	folder, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil {
		return err
	}
	return Like(f, folder)
}

// FolderLikeFolder is [LikeFolder] for a folder.
func FolderLikeFolder(dir string) error {
	f, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	return errors.Join(LikeFolder(f), f.Close())
}

// Instead gives a file that root writes over an old one to the owner of the old file. If the old file is missing,
// root's, a link, or in a folder in which any user can write, it gives it to the owner of the folder.
func Instead(f *os.File, path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	const others = 0o022 // may write
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if old, err := os.Lstat(path); err == nil && old.Mode().IsRegular() && !roots(old) && folder.Mode().Perm()&others == 0 {
		return Like(f, old)
	}
	return Like(f, folder)
}
