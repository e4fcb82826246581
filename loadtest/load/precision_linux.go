package load

import (
	"os"
	"runtime"
	"strconv"
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

// Prefer has this process run before others, where that is allowed: one that makes
// a load must not wait for what it loads. Threads to come are like those there are.
func Prefer() {
	const before = -10
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			// Who may not is late now and then, which the late starts show.
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, before)
		}
	}
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
