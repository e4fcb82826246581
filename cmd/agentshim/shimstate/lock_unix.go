//go:build unix

package shimstate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

// lock keeps other shims from writing. The kernel lets go of it when the process
// ends, however it ends. It looks again and again: whoever waits in the kernel
// keeps a thread there, also long after the answer was due.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, longestPause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch held := errors.Is(err, syscall.EWOULDBLOCK); {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case !held && !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
		case time.Since(begun) >= patience:
			return nil, errors.Join(fmt.Errorf("another process has held the lock %s for %s", path, patience), f.Close())
		}
		time.Sleep(pause/2 + rand.N(pause)) // not all at once
	}
}

// longestPause is how long it is before somebody looks again, about.
const longestPause = 8 * time.Millisecond
