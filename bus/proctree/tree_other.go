//go:build !linux

package proctree

// Kill ends a process with kill. What it has started in sessions of their own is
// known on Linux only.
func Kill(_ int, _ string, kill func()) { kill() }

// KillMarked does nothing: marked processes are found on Linux only.
func KillMarked(string) {}
