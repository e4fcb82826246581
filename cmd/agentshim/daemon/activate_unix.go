//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Activated returns the unix sockets that systemd made for this process. It returns none if
// systemd did not start the process through a socket.
func Activated() ([]*net.UnixListener, error) {
	pid, n := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name) // they are for this process only
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	count, err := strconv.Atoi(n)
	if err != nil || count < 0 || count > 64 {
		return nil, fmt.Errorf("LISTEN_FDS is %q, which is not a number of sockets", n)
	}
	var all []*net.UnixListener
	for fd := inherited; fd < inherited+count; fd++ {
		l, err := given(fd)
		if err != nil {
			return nil, fmt.Errorf("the socket from systemd: %w; give agentshim.socket one ListenStream= with a path", err)
		}
		all = append(all, l)
	}
	return all, nil
}

func given(fd int) (*net.UnixListener, error) {
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "systemd's socket")
	defer f.Close() // the listener has a copy
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s is not a unix socket", l.Addr()), l.Close())
	}
	u.SetUnlinkOnClose(false) // systemd owns the socket's file
	return u, nil
}
