//go:build !unix

package install

import "io/fs"

// Foreign is always false on this system.
func Foreign(string) bool { return false }

func links(fs.FileInfo) uint64 { return 1 }
