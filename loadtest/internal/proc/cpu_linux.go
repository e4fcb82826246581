package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpu returns the CPU time of a process, from the system's clock for it: /proc counts only
// in hundredths of a second.
func cpu(pid int) time.Duration {
	const exact = 2 // CPUCLOCK_SCHED, one of the clocks of a process
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|exact), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
