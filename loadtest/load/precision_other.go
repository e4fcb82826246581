//go:build !linux

package load

import "time"

// precision is nothing that can be had here.
func precision(bool) (release func()) { return func() {} }

// Prefer is nothing that can be had here.
func Prefer() {}

// doze is as late as a timer is; the late starts show it.
func doze(d time.Duration) { time.Sleep(d) }
