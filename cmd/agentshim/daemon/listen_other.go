//go:build !unix

package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// ErrTaken says that another daemon serves at that socket.
var ErrTaken = errors.New("another daemon already serves this socket")

// Listen is not possible where nobody can tell who is at the other end of a socket.
func Listen(string) (*net.UnixListener, func(), error) {
	return nil, nil, fmt.Errorf("the daemon cannot run on this system: %w; the hooks ask the fabric themselves", errors.ErrUnsupported)
}

// Activated are none: there is no systemd here.
func Activated() ([]*net.UnixListener, error) { return nil, nil }

// makeOwn makes a folder.
func makeOwn(dir string) error { return os.MkdirAll(dir, 0o700) }
