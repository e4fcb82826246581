//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
)

// lockVar is the environment variable with the path that a hook has locked for its new daemon.
const lockVar = "HOOKFABRIC_DAEMON_LOCK"

// Listen creates the socket, which only this user can reach. It replaces only a dead socket of this user.
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

// removeDead removes a socket that a daemon of this user left. The caller holds the lock of daemons.
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

// makeOwn makes a folder that only this user can write: another one could answer on the socket.
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

// lockedFor returns the lock that a hook took for this process, or else takes it.
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
	f, err := shimstate.TryLock(socket + ".lock")
	if errors.Is(err, shimstate.ErrLocked) {
		err = fmt.Errorf("%w: %s", ErrTaken, socket)
	}
	return f, err
}

// inherited is the first file that a process inherits after the standard three.
const inherited = 3

// Activated returns the unix sockets that systemd made for this process, if it did.
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

// maxLogFile is the size at which the log of the daemons that hooks start is rotated.
const maxLogFile = 1 << 20

// Detached starts a daemon that outlives this process. Of several callers at a time, one succeeds.
func (s Start) Detached() error {
	socket := s.Socket()
	if socket == "" || s.State == "" {
		return errors.New("found no folder for the daemon; name one with --state")
	}
	if err := makeOwn(filepath.Dir(socket)); err != nil {
		return err
	}
	if err := makeOwn(s.State); err != nil {
		return err
	}
	// The daemon inherits the locked file, and holds the lock until it ends.
	lock, err := takeLock(socket)
	if err != nil {
		return err
	}
	defer lock.Close()
	path := filepath.Join(s.State, "daemon.log")
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogFile {
		_ = os.Rename(path, path+".old")
	}
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(s.Program, append([]string{"serve"}, s.Args...)...)
	c.Dir = s.State
	c.Env = append(startEnvironment(), lockVar+"="+socket)
	c.Stdout, c.Stderr = log, log // stdin is /dev/null
	c.ExtraFiles = []*os.File{lock}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting a daemon: %w", err)
	}
	return c.Process.Release() // init adopts the daemon when this process ends
}

// startEnvironment returns the environment of the new daemon, without the runtime's variables.
func startEnvironment() (env []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(name, "HOOKFABRIC_") && name != "HOOKFABRIC_AGENT" && name != "HOOKFABRIC_IDLE",
			strings.HasPrefix(name, "XDG_"), name == "HOME", name == "PATH", name == "USER", name == "LANG", name == "TMPDIR", name == "TZ":
			env = append(env, v)
		}
	}
	return env
}
