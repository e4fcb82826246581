package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// A Command is a program that is run once.
type Command struct {
	// Path is the program, Args what follows it.
	Path string
	Args []string
	// Dir is where it runs; empty: here. Env is its environment; nil: that of this process.
	Dir string
	Env []string
	// Stdin is what it reads.
	Stdin []byte
	// Timeout is when it is ended, with all that it started.
	Timeout time.Duration
}

// A Result is what a program left behind.
type Result struct {
	Stdout, Stderr []byte
	// Exit is its exit code; -1: it was ended.
	Exit int
	// Took is how long it ran.
	Took time.Duration
}

const (
	// maxOutput bounds what is kept of a program's output.
	maxOutput = 1 << 20
	// grace is how long a program's children may hold its output open after it ended.
	grace = time.Second
)

// Run runs a program. An exit code is no error.
func Run(ctx context.Context, c Command) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("%s did not end within %s", c.Path, c.Timeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.WaitDelay = c.Dir, c.Env, bytes.NewReader(c.Stdin), grace
	alone(cmd)
	var stdout, stderr bounded
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	r := Result{Stdout: stdout.b, Stderr: stderr.b, Exit: -1, Took: time.Since(began)}
	if cmd.ProcessState != nil {
		r.Exit = cmd.ProcessState.ExitCode()
		sweep(cmd)
	}
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if _, exited := errors.AsType[*exec.ExitError](err); exited || errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return r, err
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ b []byte }

func (w *bounded) Write(b []byte) (int, error) {
	w.b = append(w.b, b[:min(len(b), maxOutput-len(w.b))]...)
	return len(b), nil
}
