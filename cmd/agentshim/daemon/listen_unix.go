//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrTaken says that another daemon serves at that socket.
var ErrTaken = errors.New("another daemon serves there")

// lockVar names the file that a hook that starts a daemon has locked for it.
const lockVar = "HOOKFABRIC_DAEMON_LOCK"

// Listen makes the socket, which only this user can reach. A socket that is
// there already was left by a daemon that died: the lock beside it ends with its process.
func Listen(socket string) (*net.UnixListener, func(), error) {
	if err := makeOwn(filepath.Dir(socket)); err != nil {
		return nil, nil, err
	}
	lock, err := lockedFor(socket)
	if err != nil {
		return nil, nil, err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, errors.Join(err, lock.Close())
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err == nil {
		err = os.Chmod(socket, 0o600)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("listening at %s: %w; name another place with --socket", socket, err), lock.Close())
	}
	return l, func() { _ = lock.Close() }, nil
}

// makeOwn makes a folder that nobody else can enter. One that is there must be
// such a one: who can write to it decides who answers there.
func makeOwn(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others can write to the folder %s; take that from them (chmod go-w), or name a socket in another one with --socket", dir)
	}
	return nil
}

// lockedFor is the lock of a socket's daemon: one that a hook took for this
// process, else a new one.
func lockedFor(socket string) (*os.File, error) {
	if os.Getenv(lockVar) == socket {
		_ = os.Unsetenv(lockVar)
		unix.CloseOnExec(inherited)
		return os.NewFile(inherited, socket+".lock"), nil
	}
	return takeLock(socket)
}

// takeLock locks a socket's place; ErrTaken: somebody else has it.
func takeLock(socket string) (*os.File, error) {
	f, err := os.OpenFile(socket+".lock", os.O_RDWR|os.O_CREATE, 0o600)
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

// inherited is the first file that a process is given beside the usual three.
const inherited = 3
