//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

// leader is the process that was started, and how it ended.
type leader struct {
	*os.Process
	state *os.ProcessState
	err   error
}

// groupAttr makes a process lead a process group.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// await returns when l has ended. It reaps it at once, as there is no portable
// way to wait without, so that here a group is killed an instant after its
// number may have become free.
func (l *leader) await() { l.state, l.err = l.Wait() }

// reap tells how l ended.
func (l *leader) reap() (*os.ProcessState, error) { return l.state, l.err }
