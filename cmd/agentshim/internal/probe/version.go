// Package probe finds the agent runtimes of this machine and their versions. It starts one
// process per runtime. That takes too long for a hook, so only `install` and `doctor` use it.
package probe

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Version is three numbers; the zero Version is unknown.
type Version [3]int

// Known reports whether the version is known.
func (v Version) Known() bool { return v != Version{} }

// Before reports whether v is older than w, or unknown.
func (v Version) Before(w Version) bool {
	return !v.Known() || cmp.Or(cmp.Compare(v[0], w[0]), cmp.Compare(v[1], w[1]), cmp.Compare(v[2], w[2])) < 0
}

func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
}

// versionForm is compiled at its first use, because a hook does not need it.
var versionForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\d{1,9})\.(\d{1,9})\.(\d{1,9})`) })

// ParseVersion finds the version in a program's output.
func ParseVersion(text string) (v Version, ok bool) {
	m := versionForm().FindStringSubmatch(text)
	if m == nil {
		return v, false
	}
	for i := range v {
		v[i], _ = strconv.Atoi(m[i+1]) // at most nine digits
	}
	return v, v.Known()
}

// Find returns the path of a program; empty: it is not on the PATH.
func Find(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	return path
}

// versionTime limits how long a program, such as a JavaScript engine, takes to print its version.
const versionTime = 20 * time.Second

// AskVersion returns the version that a program prints. The error is [exec.ErrNotFound] if there is no
// such program.
func AskVersion(ctx context.Context, program string) (Version, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return Version{}, err
	}
	r, err := Run(ctx, Command{Path: path, Args: []string{"--version"}, Timeout: versionTime})
	if err != nil {
		return Version{}, fmt.Errorf("'%s --version' failed: %w", path, err)
	}
	v, ok := ParseVersion(string(r.Stdout))
	if !ok {
		said := strings.Join(strings.Fields(string(append(r.Stdout, r.Stderr...))), " ")
		return Version{}, fmt.Errorf("'%s --version' ended with exit code %d and named no version: %.200q", path, r.Exit, said)
	}
	return v, nil
}

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
	maxOutput = 1 << 20 // limits how much of a program's output is kept
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
