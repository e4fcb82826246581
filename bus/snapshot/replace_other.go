//go:build !linux

package snapshot

// replace puts tmp in the place of dir.
func replace(tmp, dir string) error { return stepAside(tmp, dir) }
