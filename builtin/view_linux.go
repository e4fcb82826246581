package builtin

import "golang.org/x/sys/unix"

// inProcfs reports whether a folder is in procfs, at any mount point. Links in procfs
// depend on the process that follows them.
func inProcfs(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}
