package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// A Command describes one run of a program.
type Command struct {
	// Path is the program, Args are its arguments.
	Path string
	Args []string
	// Dir is the working directory, and Env the environment; empty: those of this process.
	Dir string
	Env []string
	// Stdin is its input.
	Stdin []byte
	// Timeout is the time after which Run ends the program and its children.
	Timeout time.Duration
}

// A Result is the output of a program.
type Result struct {
	Stdout, Stderr []byte
	// Exit is its exit code; -1: Run ended the program.
	Exit int
	// Took is how long it ran.
	Took time.Duration
}

const (
	// maxOutput limits how much of a program's output is kept.
	maxOutput = 1 << 20
	// grace is how long a program's children may hold its output open after the program has ended.
	grace = time.Second
)

// Run runs a program. A nonzero exit code is not an error.
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

// bounded keeps the beginning of the data that is written to it.
type bounded struct{ b []byte }

func (w *bounded) Write(b []byte) (int, error) {
	w.b = append(w.b, b[:min(len(b), maxOutput-len(w.b))]...)
	return len(b), nil
}
