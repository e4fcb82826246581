// Package chown gives the files that a program writes to the user that they are for. Root
// writes files for other users, who could otherwise neither read nor replace them.
package chown

import (
	"errors"
	"os"
	"path/filepath"
)

// LikeFolder gives what root has just made in a folder to whom the folder belongs. What
// anybody else makes is his.
//
// It is for what nobody else can have put there: whoever owns the folder may have a link
// in it to a file that is not his.
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

// Instead gives a file that root writes into the place of another one to whom that belongs,
// unless it is root's, or a link, or may have been put there by anybody; then, and where
// there is none, to whom the folder does.
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
