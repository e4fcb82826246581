package builtin

import "golang.org/x/sys/unix"

// inProcfs reports whether a folder is in procfs, wherever that is mounted. Its
// links depend on the process that follows them.
func inProcfs(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}
