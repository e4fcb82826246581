//go:build !linux

package snapshot

// replace exchanges tmp and dir. The old folder is then called tmp.
func replace(tmp, dir string) error { return stepAside(tmp, dir) }
