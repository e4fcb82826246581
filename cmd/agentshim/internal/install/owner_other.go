//go:build !unix

package install

import "io/fs"

// Foreign reports whether a folder belongs to another user, whose programs the new files would block. It
// is always false on this system.
func Foreign(string) bool { return false }

func links(fs.FileInfo) uint64 { return 1 }
