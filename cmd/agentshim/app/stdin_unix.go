//go:build unix

package app

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hookfabric/hookfabric/schema"
)

// readFile reads f until the deadline. It waits in poll, without the thread that a read needs.
func readFile(f *os.File, deadline time.Time) (data []byte, err error, ok bool) {
	fd := int(f.Fd())
	data = make([]byte, 0, 16<<10)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return nil, errSlow, true
		}
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		ready, failed := unix.Poll(polled, int(min(left.Milliseconds()+1, 1<<30)))
		switch {
		case errors.Is(failed, unix.EINTR) || ready == 0 && failed == nil:
			continue
		case failed != nil || polled[0].Revents&unix.POLLNVAL != 0:
			return nil, failed, false // package os may know better
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := unix.Read(fd, data[len(data):min(cap(data), schema.MaxEvent+1)])
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return data, unreadable(err), true
		case n == 0:
			return data, nil, true
		}
		if data = data[:len(data)+n]; len(data) > schema.MaxEvent {
			return data, errLarge(), true
		}
	}
}
