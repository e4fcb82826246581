//go:build unix

package live

import (
	"io"

	"golang.org/x/sys/unix"
)

// columns is how wide the terminal behind w is; 0: there is none.
func columns(w io.Writer) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	if size.Col == 0 {
		return 80 // a terminal that does not know how wide it is
	}
	return int(size.Col)
}
