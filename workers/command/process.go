package command

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/hookfabric/hookfabric/workers/internal/child"
)

// defaultGrace is how long the output of an exited program may still arrive through
// processes that it leaves behind, such as a `tee`.
const defaultGrace = 500 * time.Millisecond

// busyTries is how often a program that is being written is started, each time after
// twice the wait: an eighth of a second in all.
const busyTries = 8

// process is a running program and the worker's ends of its streams.
type process struct {
	*child.Process
	grace time.Duration
	pipes pipes
}

// ending is how a program ended, and its output.
type ending struct {
	state   *os.ProcessState
	stdout  []byte
	stderr  []byte
	flooded bool  // it printed too much
	held    bool  // a process that outlived it kept its output open
	cause   error // why it was killed
	err     error // why its end is unknown
}

// start starts the program of h. If the file is being written ("text file busy"), start
// tries again for a moment, so that saving a policy in place does not switch it off.
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
	started, err := child.Start(h.runner.guard, child.Spec{Argv: h.argv, Dir: h.dir, Env: env, Files: theirs})
	child.CloseAll(theirs)
	if err != nil {
		ps.close()
		return nil, err
	}
	return &process{Process: started, grace: h.runner.grace, pipes: ps}, nil
}

// finish writes the program's input, waits until it has ended or must be killed, and
// reaps it.
func (p *process) finish(ctx context.Context, stdin []byte) (e ending) {
	p.pipes.run(stdin)
	select {
	case <-p.Exited():
		e.held = !p.drain(ctx)
	case <-p.pipes.flood:
		p.KillAll()
	case <-ctx.Done():
		e.cause = context.Cause(ctx)
		p.KillAll()
	}
	p.Kill()
	<-p.Exited()
	p.pipes.cut()
	e.stdout, e.stderr, e.flooded = p.pipes.result()
	e.state, e.err = p.Reap()
	return e
}

// drain waits for the rest of the output of an exited program, and reports whether it is
// complete.
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
