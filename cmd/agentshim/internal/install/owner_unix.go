//go:build unix

package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Foreign reports whether this process is root's and a folder is not: root's files would block its owner.
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

func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) //nolint:unconvert // it is smaller on other systems
	}
	return 1
}
