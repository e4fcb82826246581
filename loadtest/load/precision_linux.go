package load

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// precision keeps the calling goroutine on a thread of its own whose sleeps end
// when they should, and not up to 50 µs later.
func precision(wanted bool) (release func()) {
	if !wanted {
		return func() {}
	}
	runtime.LockOSThread()
	// A thread that may not have it is late by those 50 µs, which the late starts show.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return runtime.UnlockOSThread
}

// doze sleeps by the system's clock: the runtime's timers are up to a
// millisecond late when there is nothing else to do.
func doze(d time.Duration) {
	if d <= 0 {
		return
	}
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // one that was interrupted is begun anew
}
