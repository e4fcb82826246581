//go:build !unix

package program

// writable is always true, because only a write can tell on these systems.
func writable(string) bool { return true }

// owned is always false, because these systems do not tell the owner of a folder.
func owned(string, int) bool { return false }
