package child

import (
	"os"
	"runtime"
	"slices"
	"syscall"

	"github.com/hookfabric/hookfabric/bus/proctree"
)

// A Spec describes a process to start.
type Spec struct {
	Argv []string
	Dir  string
	// Env is its whole environment.
	Env []string
	// Files are its open files, from its standard input on. The caller closes its own.
	Files []*os.File
}

// A Process is a running process that leads its group. Its pid is reserved until it is
// reaped. The group is only killed before that, because another process may get the
// number afterwards.
type Process struct {
	leader leader
	guard  *Guard
	mark   string // in its environment, and that of all its descendants
	exited chan struct{}
}

// Start starts a process that g watches. The caller must reap it.
func Start(g *Guard, s Spec) (*Process, error) {
	p := &Process{guard: g, mark: proctree.NewMark(), exited: make(chan struct{})}
	attr := &os.ProcAttr{Dir: s.Dir, Env: append(slices.Clone(s.Env), p.mark), Files: s.Files, Sys: groupAttr()}
	started := make(chan error)
	go p.own(s.Argv, attr, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// own starts the process and waits for its end on one thread. The kernel kills the
// process when that thread ends, not when the worker does, so the thread must do nothing
// else and outlive the process.
func (p *Process) own(argv []string, attr *os.ProcAttr, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.guard.wake()
	var err error
	p.leader.Process, err = os.StartProcess(argv[0], argv, attr)
	if err != nil {
		started <- err
		return
	}
	p.guard.add(p.leader.Pid)
	started <- nil
	p.leader.await()
	close(p.exited)
}

// Pid returns the number of the process and of its group.
func (p *Process) Pid() int { return p.leader.Pid }

// Exited is closed when the process has ended and is not reaped yet.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Kill kills the group, and the leader even if it has left its group. Do not call it
// after Reap.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.leader.Pid, syscall.SIGKILL)
	_ = p.leader.Kill()
}

// KillAll is [Process.Kill], and on Linux also kills descendants in other groups and
// sessions. It reads all processes of the system, so use it only for a process that did
// not end in time.
func (p *Process) KillAll() {
	proctree.Kill(p.leader.Pid, p.mark, p.Kill)
}

// Reap waits for the end of the process and returns how it ended.
func (p *Process) Reap() (*os.ProcessState, error) {
	<-p.exited
	p.guard.remove(p.leader.Pid)
	return p.leader.reap()
}
