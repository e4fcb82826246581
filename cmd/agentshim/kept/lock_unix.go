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
// ends, however it ends, and gives it to those who wait in their order.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	locked := make(chan error)
	late := make(chan struct{})
	go func() {
		var err error
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		select {
		case locked <- err:
		case <-late:
			_ = f.Close() // nobody waits any more
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err = <-locked:
	case <-timer.C:
		close(late)
		return nil, fmt.Errorf("another process has held %s for %s", path, patience)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
