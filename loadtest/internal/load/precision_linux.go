package load

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// precision locks the calling goroutine to a thread whose sleeps end on time, not up to 50
// µs later.
func precision(wanted bool) (release func()) {
	if !wanted {
		return func() {}
	}
	runtime.LockOSThread()
	// Without permission the thread is 50 µs late, which the late starts show.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return runtime.UnlockOSThread
}

// Prefer gives this process a higher priority, if that is allowed: a process that makes a
// load must not wait for the programs under load. New threads inherit the priority.
func Prefer() {
	const before = -10
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			// Without permission the process is sometimes late, which the late starts show.
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, before)
		}
	}
}

// doze sleeps with a system call: the runtime's timers are up to a millisecond late in an
// idle process.
func doze(d time.Duration) {
	if d <= 0 {
		return
	}
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // after an interruption the caller sleeps again
}
