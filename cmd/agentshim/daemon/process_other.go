//go:build !unix

package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Listen returns an error: this system cannot identify the peer of a socket.
func Listen(string) (*net.UnixListener, func(), error) {
	return nil, nil, fmt.Errorf("the daemon cannot run on this system: %w; the hooks ask the fabric themselves", errors.ErrUnsupported)
}

// Activated returns no sockets: this system has no systemd.
func Activated() ([]*net.UnixListener, error) { return nil, nil }

// Detached returns an error: this system has no daemons.
func (Start) Detached() error { return errors.ErrUnsupported }

func makeOwn(dir string) error { return os.MkdirAll(dir, 0o700) }

func dial(string, time.Time) (line, error) {
	return nil, fmt.Errorf("%w: %w", ErrAbsent, errors.ErrUnsupported)
}
