//go:build !unix

package owner

import (
	"io/fs"
	"os"
)

// Like gives a file to whom another one belongs.
func Like(*os.File, fs.FileInfo) error { return nil }

func roots(fs.FileInfo) bool { return true }

// OpenFolder opens a folder that was just made.
func OpenFolder(dir string) (*os.File, error) { return os.Open(dir) }
