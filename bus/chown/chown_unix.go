//go:build unix

package chown

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// Like gives a file to the owner of another one.
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
		return fmt.Errorf("the file belongs to user %d and group %d, and would change its owner: %w; run the command as that user", a.Uid, a.Gid, err)
	}
	return nil
}

func roots(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || s.Uid == 0
}

// userOf returns the owner of a file.
func userOf(info fs.FileInfo) (uid int, known bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}

// MountPoint reports whether a folder is on another file system than the folder above it, as
// a container's volumes are.
func MountPoint(dir string) bool {
	var is, above syscall.Stat_t
	// filepath.Join would name the folder above a symbolic link instead of the one above its target.
	return syscall.Stat(dir, &is) == nil && syscall.Stat(dir+"/..", &above) == nil && is.Dev != above.Dev
}

// groupOf returns the group of a file.
func groupOf(info fs.FileInfo) (gid int, known bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Gid), true
}

// ownGroup reports whether a group is root's, or one of this process's. Root is in all groups.
func ownGroup(gid int) bool {
	if gid == 0 || os.Geteuid() == 0 || gid == os.Getegid() {
		return true
	}
	groups, err := syscall.Getgroups()
	return err == nil && slices.Contains(groups, gid)
}

// OpenFolder opens a folder that was just made. It does not follow a link that replaced it.
func OpenFolder(dir string) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
}
