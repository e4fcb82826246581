package child

import (
	"os"
	"runtime"
	"slices"
	"syscall"

	"github.com/hookfabric/hookfabric/bus/proctree"
)

// A Spec is a process to be started.
type Spec struct {
	Argv []string
	Dir  string
	// Env is its whole environment.
	Env []string
	// Files are its open files, from its standard input on. They stay the caller's.
	Files []*os.File
}

// A Process is a running process, the leader of its group. Its pid stays its
// own until it is reaped, so the group is only ever killed before that:
// afterwards the number may belong to somebody else.
type Process struct {
	leader leader
	guard  *Guard
	mark   string // in its environment, and that of all it starts
	exited chan struct{}
}

// Start starts a process that g watches over. Whoever starts it reaps it.
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

// own starts the process and waits for its end on one thread. The kernel kills
// the process when the thread that started it ends, not when the worker does,
// so that thread must do nothing else and outlive the process.
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

// Pid is the number of the process and of its group.
func (p *Process) Pid() int { return p.leader.Pid }

// Exited is closed when the process has ended and is not reaped yet.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Kill ends the group, and the leader also if it has left its group. It must
// not be called any more once Reap was.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.leader.Pid, syscall.SIGKILL)
	_ = p.leader.Kill()
}

// KillAll is [Process.Kill], and on Linux ends what the process has started in
// groups and sessions of their own, too. It looks at all processes of the system:
// use it for one that did not end as it should.
func (p *Process) KillAll() {
	proctree.Kill(p.leader.Pid, p.mark, p.Kill)
}

// Reap waits for the end of the process and tells how it ended.
func (p *Process) Reap() (*os.ProcessState, error) {
	<-p.exited
	p.guard.remove(p.leader.Pid)
	return p.leader.reap()
}
