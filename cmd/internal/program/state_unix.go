//go:build unix

package program

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// mayWrite is W_OK and X_OK of access(2): files can be made in a folder.
const mayWrite = 2 | 1

// writable reports whether a folder can be written, or can be made if it is missing.
func writable(dir string) bool {
	for {
		err := syscall.Access(dir, mayWrite)
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return err == nil
		}
		dir = parent
	}
}

// owned reports whether dir is a folder of the user that no other user can read or write. A link is
// no folder.
func owned(dir string, uid int) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == uid
}
