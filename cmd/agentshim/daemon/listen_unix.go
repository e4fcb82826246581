//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ErrTaken is returned if another daemon serves the socket.
var ErrTaken = errors.New("another daemon already serves this socket")

// lockVar is the environment variable with the path of the file that a hook has locked for
// the daemon that it starts.
const lockVar = "HOOKFABRIC_DAEMON_LOCK"

// Listen creates the socket, which only this user can reach. It replaces a socket of this
// user that does not answer, because a daemon that died left it. It does not replace any
// other file.
func Listen(socket string) (*net.UnixListener, func(), error) {
	if err := makeOwn(filepath.Dir(socket)); err != nil {
		return nil, nil, err
	}
	lock, err := lockedFor(socket)
	if err != nil {
		return nil, nil, err
	}
	if err := removeDead(socket); err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err == nil {
		err = os.Chmod(socket, 0o600)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("listening at %s: %w; name another path with --socket", socket, err), lock.Close())
	}
	return l, func() { _ = lock.Close() }, nil
}

// removeDead removes a socket that a daemon of this user left. The caller holds the lock,
// so no daemon serves the socket; another program may.
func removeDead(socket string) error {
	info, err := os.Lstat(socket)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket; move it away, or name another path with --socket", socket)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("the socket %s belongs to the user with id %d; name another path with --socket", socket, s.Uid)
	}
	c, err := net.DialTimeout("unix", socket, aliveTime)
	if err == nil {
		return errors.Join(fmt.Errorf("another program serves at %s; stop it, or name another path with --socket", socket), c.Close())
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("checking whether a program serves at %s: %w; name another path with --socket", socket, err)
	}
	return os.Remove(socket)
}

// aliveTime limits how long a program may take to accept a connection.
const aliveTime = time.Second

// makeOwn makes a folder that only this user can enter. An existing folder must be like
// that: a user who can write to it decides which program answers on the socket.
func makeOwn(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("other users can write to the folder %s; run chmod go-w on it, or name a socket in another folder with --socket", dir)
	}
	return nil
}

// lockedFor returns the lock of a socket's daemon. It uses the lock that a hook took for
// this process, or else takes it.
func lockedFor(socket string) (*os.File, error) {
	if os.Getenv(lockVar) == socket {
		_ = os.Unsetenv(lockVar)
		unix.CloseOnExec(inherited)
		return os.NewFile(inherited, socket+".lock"), nil
	}
	return takeLock(socket)
}

// takeLock locks a socket's place. It returns ErrTaken if another process holds the lock.
func takeLock(socket string) (*os.File, error) {
	f, err := os.OpenFile(socket+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w: %s", ErrTaken, socket)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// inherited is the number of the first file that a process inherits after the standard
// three.
const inherited = 3
