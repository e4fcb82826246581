//go:build !unix

package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// ErrTaken is returned if another daemon serves the socket.
var ErrTaken = errors.New("another daemon already serves this socket")

// Listen returns an error: this system cannot identify the peer of a socket.
func Listen(string) (*net.UnixListener, func(), error) {
	return nil, nil, fmt.Errorf("the daemon cannot run on this system: %w; the hooks ask the fabric themselves", errors.ErrUnsupported)
}

// Activated returns no sockets: this system has no systemd.
func Activated() ([]*net.UnixListener, error) { return nil, nil }

// makeOwn makes a folder.
func makeOwn(dir string) error { return os.MkdirAll(dir, 0o700) }
