package child

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// leader is the started process.
type leader struct{ *os.Process }

// groupAttr makes a process lead a process group, and makes the kernel kill it when the
// thread that started it ends.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// await returns when l has ended, and does not reap it.
func (l *leader) await() {
	for {
		err := unix.Waitid(unix.P_PID, l.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// reap reaps an ended process.
func (l *leader) reap() (*os.ProcessState, error) { return l.Wait() }
