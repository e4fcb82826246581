//go:build !unix

package shimstate

import "os"

// TryLock opens a file and locks nothing on systems without flock: concurrent shims of one agent may then
// lose each other's changes, and the fabric delivers an item twice.
func TryLock(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) }
