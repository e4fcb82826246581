//go:build !linux

package builtin

// inProcfs reports whether a folder is in procfs, of which the links depend on
// the process that follows them. Elsewhere than on Linux names tell it.
func inProcfs(string) bool { return false }
