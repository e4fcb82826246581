package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// DefaultGrace is how long a server has to end by itself after its input has
// ended, and again after it was told to.
const DefaultGrace = 5 * time.Second

// hurry is how long a server has when the proxy itself was told to end.
const hurry = 500 * time.Millisecond

// A Process is a server that the proxy starts, and that ends with it.
type Process struct {
	// Args are the program and its arguments. It has the proxy's environment and
	// folder: in the client's configuration they are the server's.
	Args []string
	// Grace is how long it has to end; 0: [DefaultGrace].
	Grace time.Duration
	// Stderr gets what it says there.
	Stderr io.Writer
}

// Run starts the server, passes messages on until either end has gone, and
// returns the server's exit code when its process group is gone. Of a server that must
// be killed, what it started in sessions of their own is gone as well, on Linux.
func (s *Process) Run(ctx context.Context, p Pipe) (code int, err error) {
	cmd := exec.Command(s.Args[0], s.Args[1:]...) //nolint:gosec // to start what it is told to is what it is for
	in, toServer, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	fromServer, out, err := os.Pipe()
	if err != nil {
		return 0, errors.Join(err, in.Close(), toServer.Close())
	}
	defer fromServer.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, s.Stderr
	cmd.WaitDelay = hurry // for what it started and that holds its stderr open
	mark := apart(cmd)
	err = cmd.Start()
	_, _ = in.Close(), out.Close()
	if err != nil {
		_ = toServer.Close()
		return 0, fmt.Errorf("starting the MCP server: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	input := &ending{WriteCloser: toServer, closed: make(chan struct{})}
	p.FromServer, p.ToServer = fromServer, input
	passed, exited := make(chan struct{}), make(chan struct{})
	var ran sync.WaitGroup
	ran.Go(func() {
		defer close(passed)
		_ = p.Run(ctx) // that the client has gone is no fault of anybody
	})
	ran.Go(func() {
		defer close(exited)
		_ = cmd.Wait() // how it ended is in its state
	})
	s.attend(ctx, input, passed, exited, []func(){func() { ask(cmd) }, func() { killAll(cmd, mark) }})
	kill(cmd) // what it started in its group goes with it
	s.drain(fromServer, passed)
	cancel()
	_ = input.Close()
	ran.Wait()
	return exitCode(cmd.ProcessState), nil
}

// attend returns when the server has ended, which it sees to once either end has
// nothing more to say, by one step after the other.
func (s *Process) attend(ctx context.Context, input *ending, passed, exited <-chan struct{}, steps []func()) {
	grace := s.Grace
	if grace <= 0 {
		grace = DefaultGrace
	}
	soon := grace
	select {
	case <-exited:
		return
	case <-passed: // its output has ended, or nobody hears it
	case <-input.closed:
	case <-ctx.Done():
		soon = min(soon, hurry)
	}
	_ = input.Close()
	for _, step := range steps {
		if ends(ctx, exited, soon) {
			return
		}
		step()
		if ctx.Err() != nil {
			soon = min(grace, 2*hurry)
		} else {
			soon = grace
		}
	}
	<-exited
}

// ends waits for a process, not for longer than that, and hardly at all once ctx
// has ended.
func ends(ctx context.Context, exited <-chan struct{}, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	done := ctx.Done()
	if ctx.Err() != nil {
		done = nil
	}
	for {
		select {
		case <-exited:
			return true
		case <-t.C:
			return false
		case <-done:
			done = nil
			t.Reset(min(wait, hurry))
		}
	}
}

// drain waits until the server's last words are passed on. One that has left a
// process behind which holds its output open has said its last.
func (s *Process) drain(fromServer io.Closer, passed <-chan struct{}) {
	t := time.NewTimer(hurry)
	defer t.Stop()
	select {
	case <-passed:
	case <-t.C:
		_ = fromServer.Close()
		<-passed // results may still be looked at
	}
}

// An ending tells when it is closed.
type ending struct {
	io.WriteCloser
	once   sync.Once
	closed chan struct{}
	err    error
}

// Close closes it once.
func (e *ending) Close() error {
	e.once.Do(func() {
		e.err = e.WriteCloser.Close()
		close(e.closed)
	})
	return e.err
}
