//go:build unix

package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

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
