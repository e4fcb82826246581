//go:build !linux

package builtin

// inProcfs is false: outside Linux, processView recognises the paths that depend on the
// process.
func inProcfs(string) bool { return false }
