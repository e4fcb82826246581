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

// DefaultGrace is the default of [Process.Grace].
const DefaultGrace = 5 * time.Second

// shortGrace is the grace when the proxy itself must end.
const shortGrace = 500 * time.Millisecond

// A Process is a server that the proxy starts, and that ends with the proxy.
type Process struct {
	// Args are the program and its arguments. It has the proxy's environment and working folder.
	Args []string
	// Grace is how long the server has to exit without input, and after SIGTERM; 0: [DefaultGrace].
	Grace time.Duration
	// Stderr gets the server's stderr.
	Stderr io.Writer
}

// Run starts the server, passes messages on until the client or the server ends, and returns the server's exit
// code. Its process group is gone then, and on Linux also what a killed server started elsewhere.
func (s *Process) Run(ctx context.Context, p Pipe) (code int, err error) {
	cmd := exec.Command(s.Args[0], s.Args[1:]...) //nolint:gosec // the user names the program
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
	cmd.WaitDelay = shortGrace // a child of the server may hold its stderr open
	mark := prepareGroup(cmd)
	err = cmd.Start()
	_, _ = in.Close(), out.Close()
	if err != nil {
		_ = toServer.Close()
		return 0, fmt.Errorf("starting the MCP server: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	closed := make(chan struct{})
	input := onceCloser{toServer, sync.OnceValue(func() error {
		defer close(closed)
		return toServer.Close()
	})}
	p.FromServer, p.ToServer = fromServer, input
	passed, exited := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		defer close(passed)
		_ = p.Run(ctx) // fails if the client has gone, which ends the server
	})
	running.Go(func() {
		defer close(exited)
		_ = cmd.Wait() // ProcessState has the outcome
	})
	s.end(ctx, cmd, mark, input, closed, passed, exited)
	killGroup(cmd)
	select {
	case <-passed:
	case <-time.After(shortGrace): // a child of the server holds its output open
		_ = fromServer.Close()
		<-passed // results may still wait for verdicts
	}
	cancel()
	_ = input.Close()
	running.Wait()
	return exitCode(cmd.ProcessState), nil
}

// end waits until the client or the server has ended, closes the server's input, terminates it, and kills it.
func (s *Process) end(ctx context.Context, cmd *exec.Cmd, mark string, input io.Closer, closed, passed, exited <-chan struct{}) {
	grace := s.Grace
	if grace <= 0 {
		grace = DefaultGrace
	}
	wait := grace
	select {
	case <-exited:
		return
	case <-passed: // the server's output has ended, or the client has gone
	case <-closed:
	case <-ctx.Done():
		wait = min(wait, shortGrace)
	}
	_ = input.Close()
	if exits(ctx, exited, wait) {
		return
	}
	terminate(cmd)
	if ctx.Err() != nil {
		grace = min(grace, 2*shortGrace)
	}
	if exits(ctx, exited, grace) {
		return
	}
	killAll(cmd, mark)
	<-exited
}

// exits waits for the exit of a process. It waits at most shortGrace after ctx ends during the wait.
func exits(ctx context.Context, exited <-chan struct{}, wait time.Duration) bool {
	done := ctx.Done()
	if ctx.Err() != nil {
		done = nil
	}
	select {
	case <-exited:
		return true
	case <-time.After(wait):
		return false
	case <-done:
		return exits(ctx, exited, min(wait, shortGrace))
	}
}

type onceCloser struct {
	io.Writer
	close func() error
}

func (o onceCloser) Close() error { return o.close() }
