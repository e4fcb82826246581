package install

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// asOwner runs f, which reads or writes a file, with the rights of the user who owns a folder in the path, if
// the process is root's. A link in a user's home takes root no further than the user.
func asOwner(path string, f func() error) error {
	user, ok := firstOwner(path)
	if !ok {
		return f()
	}
	done := make(chan error, 1)
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread ends with its rights
		err := take(user)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// firstOwner returns the first other owner on the way to a path, if this process is root's.
func firstOwner(path string) (user syscall.Stat_t, ok bool) {
	if os.Geteuid() != 0 {
		return user, false
	}
	at := string(filepath.Separator)
	for name := range strings.SplitSeq(filepath.Clean(path), at) {
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		if err != nil {
			break
		}
		if s, is := info.Sys().(*syscall.Stat_t); is && s.Uid != 0 {
			return *s, true
		}
	}
	return user, false
}

// take gives this thread a user's rights to files, without root's groups.
func take(user syscall.Stat_t) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("switching to user %d: %w; install as that user", user.Uid, errno)
	}
	_, _ = unix.SetfsgidRetGid(int(user.Gid)) // it returns no error, so the result is read below
	_, _ = unix.SetfsuidRetUid(int(user.Uid))
	gid, _ := unix.SetfsgidRetGid(-1)
	uid, _ := unix.SetfsuidRetUid(-1)
	if uid != int(user.Uid) || gid != int(user.Gid) {
		return fmt.Errorf("agentshim cannot switch to user %d; install as that user", user.Uid)
	}
	return nil
}

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
