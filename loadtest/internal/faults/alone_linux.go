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
	// marker is the environment variable with the network of the process that called
	// [Alone].
	marker = "LOADTEST_NOT_IN"
	// mine is the path of this process's network namespace.
	mine = "/proc/self/ns/net"
)

// IsAlone reports whether [Alone] started this process in its own network.
func IsAlone() bool {
	at, err := os.Readlink(mine)
	left := os.Getenv(marker)
	return err == nil && left != "" && at != left
}

// Alone runs this program with other arguments in a new network, and returns its exit code.
// When ctx ends, it sends SIGTERM to that process.
func Alone(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	program, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("finding this program's own file: %w", err)
	}
	left, err := os.Readlink(mine)
	if err != nil {
		return 0, fmt.Errorf("finding this process's network: %w", err)
	}
	// The child gets SIGTERM when the thread that started it ends.
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

// apart returns the attributes that start a process in a new network. A user other than
// root also needs a user namespace, in which it is root.
func apart() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	if os.Geteuid() != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return a
}
