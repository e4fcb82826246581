package command

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"
)

// defaultGrace is how long a program that has exited is given to have its output
// arrive through processes that it leaves behind, such as a `tee`.
const defaultGrace = 500 * time.Millisecond

// busyTries is how often a program is tried that somebody is just writing, each
// time after twice the wait: an eighth of a second in all.
const busyTries = 8

// process is a running program, the leader of its group. Its pid stays its own
// until it is reaped, so the group is only ever killed before that: afterwards
// the number may belong to somebody else.
type process struct {
	leader leader
	guard  *guard
	grace  time.Duration
	exited chan struct{} // closed when the leader has ended and is not reaped yet
	pipes  pipes
}

// ending is how a program ended and what it wrote.
type ending struct {
	state   *os.ProcessState
	stdout  []byte
	stderr  []byte
	flooded bool  // it printed too much
	held    bool  // something that outlived it kept its output open
	cause   error // why it was killed
	err     error // why nothing is known of its end
}

// start starts the program of h. A program that is just being written ("text
// file busy") is tried again for a moment: who saves a policy in place must
// not switch it off by that.
func start(ctx context.Context, h *handler, env []string) (*process, error) {
	for try := 1; ; try++ {
		p, err := startOnce(h, env)
		if !errors.Is(err, syscall.ETXTBSY) || try == busyTries {
			return p, err
		}
		select {
		case <-time.After(time.Millisecond << (try - 1)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func startOnce(h *handler, env []string) (*process, error) {
	ps, theirs, err := openPipes()
	if err != nil {
		return nil, err
	}
	p := &process{guard: h.runner.guard, grace: h.runner.grace, exited: make(chan struct{}), pipes: ps}
	attr := &os.ProcAttr{Dir: h.dir, Env: env, Files: theirs, Sys: groupAttr()}
	started := make(chan error)
	go p.own(h.argv, attr, started)
	err = <-started
	closeAll(theirs)
	if err != nil {
		p.pipes.close()
		return nil, err
	}
	return p, nil
}

// own starts the program and waits for its end on one thread. The kernel kills
// the program when the thread that started it ends, not when the worker does,
// so that thread must do nothing else and outlive the program.
func (p *process) own(argv []string, attr *os.ProcAttr, started chan<- error) {
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

// finish hands the program its input and waits until it has ended, by itself
// or because it had to be killed, and is reaped.
func (p *process) finish(ctx context.Context, stdin []byte) (e ending) {
	p.pipes.run(stdin)
	select {
	case <-p.exited:
		e.held = !p.drain(ctx)
	case <-p.pipes.flood:
	case <-ctx.Done():
		e.cause = context.Cause(ctx)
	}
	p.kill()
	<-p.exited
	p.pipes.cut()
	e.stdout, e.stderr, e.flooded = p.pipes.result()
	p.guard.remove(p.leader.Pid)
	e.state, e.err = p.leader.reap()
	return e
}

// drain waits for the rest of the output of a program that has exited, and
// reports whether all of it came.
func (p *process) drain(ctx context.Context) bool {
	select {
	case <-p.pipes.drained:
		return true
	default:
	}
	timer := time.NewTimer(p.grace)
	defer timer.Stop()
	select {
	case <-p.pipes.drained:
		return true
	case <-p.pipes.flood:
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// kill ends the group, and the leader also if it has left its group.
func (p *process) kill() {
	_ = syscall.Kill(-p.leader.Pid, syscall.SIGKILL)
	_ = p.leader.Kill()
}
