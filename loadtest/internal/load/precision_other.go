//go:build !linux

package load

import "time"

// precision does nothing on this system.
func precision(bool) (release func()) { return func() {} }

// Prefer does nothing on this system.
func Prefer() {}

// doze sleeps with a timer, whose delay the late starts show.
func doze(d time.Duration) { time.Sleep(d) }
