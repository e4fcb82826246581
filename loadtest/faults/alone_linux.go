package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// marker is the variable that says which network a process was started from to be alone.
	marker = "LOADTEST_NOT_IN"
	// mine is the network that a process is in.
	mine = "/proc/self/ns/net"
)

// IsAlone reports whether this process is in a network of its own, that of [Alone].
func IsAlone() bool {
	at, err := os.Readlink(mine)
	left := os.Getenv(marker)
	return err == nil && left != "" && at != left
}

// Alone runs this program with other arguments in a network of its own, and returns
// its exit code. When ctx ends, it is asked to end.
func Alone(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	program, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("finding this program's own file: %w", err)
	}
	left, err := os.Readlink(mine)
	if err != nil {
		return 0, fmt.Errorf("finding this process's network: %w", err)
	}
	// The child is told of the end of the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := exec.CommandContext(ctx, program, args...)
	c.Stdout, c.Stderr, c.Env = stdout, stderr, append(os.Environ(), marker+"="+left)
	c.SysProcAttr = apart()
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	err = c.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok && ended.Exited() {
		return ended.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("running this program in its own network namespace: %w", err)
	}
	return 0, nil
}

// apart starts a process in a network of its own; whoever is not root is so there.
func apart() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	if os.Geteuid() != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return a
}
