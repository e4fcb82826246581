//go:build !unix

package daemon

import "errors"

// A Start is a daemon that a hook starts for the calls after its own.
type Start struct {
	Place

	// Program is the executable, and Args follow `serve`.
	Program string
	Args    []string
}

// Detached returns an error: this system has no daemons.
func (Start) Detached() error { return errors.ErrUnsupported }
