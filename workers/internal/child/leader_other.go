//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

// leader is the started process, and how it ended.
type leader struct {
	*os.Process
	state *os.ProcessState
	err   error
}

// groupAttr makes a process lead a process group.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// await returns when l has ended. It reaps it at once, because there is no portable way
// to wait without reaping. Its group is therefore killed an instant after its number may
// have been freed.
func (l *leader) await() { l.state, l.err = l.Wait() }

// reap returns how l ended.
func (l *leader) reap() (*os.ProcessState, error) { return l.state, l.err }
