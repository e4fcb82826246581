package install

import "golang.org/x/sys/unix"

// exchange has two files change places, in one moment for everybody.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
