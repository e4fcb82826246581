//go:build linux && (amd64 || arm64)

package early

import "unsafe"

// A clock says how long the process has lived, in nanoseconds. Its runtime
// began to wait when it started it, and on a busy machine that is a while before
// its first instruction.
type clock struct{ began int64 }

func (c *clock) elapsed() int64 { return monotonic() - c.began }

// The clocks of the system.
const (
	clockReal      = 0
	clockMonotonic = 1
	clockBoot      = 7
)

func monotonic() int64 { return read(clockMonotonic) }

func read(clock uintptr) int64 {
	var t moment
	if _, _, errno := rawSyscall6(sysClockGettime, clock, uintptr(unsafe.Pointer(&t)), 0, 0, 0, 0); errno != 0 {
		return 0
	}
	return t.sec*second + t.nsec
}

// age is how long ago the process was made; 0: nobody knows. Linux tells it in
// hundredths of seconds, so that it is up to 10 ms too much.
func age() int64 {
	data, ok := file("/proc/self/stat\x00", 4096)
	if !ok {
		return 0
	}
	ticks, ok := startOf(data)
	if !ok {
		return 0
	}
	return max(0, read(clockBoot)-ticks*(second/100))
}
