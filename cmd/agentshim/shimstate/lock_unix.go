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

// lock locks a file for writers. The kernel unlocks it when the process ends. It polls, because a wait
// in the kernel would hold a thread, even after the hook's deadline.
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
		case time.Since(begun) >= lockTime:
			return nil, errors.Join(fmt.Errorf("another process has held the lock %s for %s", path, lockTime), f.Close())
		}
		time.Sleep(pause/2 + rand.N(pause)) // so that processes do not poll at the same time
	}
}

// longestPause limits the time between two attempts, on average.
const longestPause = 8 * time.Millisecond
