//go:build unix

package kept

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock keeps other shims from writing. The kernel lets go of it when the process
// ends, however it ends.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK), time.Now().After(end):
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
		}
		time.Sleep(time.Millisecond)
	}
}
