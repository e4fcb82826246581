package field

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpu is the CPU time that a process has taken, by the clock that the system
// keeps for it: /proc counts in hundredths of a second.
func cpu(pid int) time.Duration {
	const exact = 2 // of the kinds of clocks that a process has
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|exact), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
