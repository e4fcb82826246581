package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A Crew has the children of one parent. It is not safe for concurrent use.
type Crew struct {
	// Args precede the role's name on a child's command line.
	Args []string
	// Env is added to this process's environment for children.
	Env []string
	// Log receives the standard error of the children; nil: it is discarded.
	Log *os.File
	// Within calls start in another environment, such as another host; nil: here.
	Within func(start func() error) error

	children []*Child
}

// Start starts a child, sends it its configuration and waits until it is up. Facts receives
// the facts that the role reports; nil: the facts are not requested.
func (c *Crew) Start(ctx context.Context, role string, config, facts any) (*Child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program's own file: %w", err)
	}
	cmd := exec.Command(program, append(slices.Clone(c.Args), role)...)
	cmd.SysProcAttr, cmd.Env = &syscall.SysProcAttr{Setpgid: true}, append(Environ(), c.Env...)
	if c.Log != nil {
		cmd.Stderr = c.Log
	}
	child, err := c.started(cmd, role)
	if err != nil {
		return nil, fmt.Errorf("starting the role %s: %w", role, err)
	}
	c.children = append(c.children, child)
	if err := child.Ask(ctx, config, facts); err != nil {
		return nil, fmt.Errorf("starting the role %s: %w", role, err)
	}
	return child, nil
}

// Environ returns the environment of this process without the settings of the fabric: a
// load test must use its user's own fabric only if a flag names it.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "HOOKFABRIC_") || strings.HasPrefix(v, "XDG_RUNTIME_DIR=")
	})
}

// Stop ends all children, the last started first, and waits for them.
func (c *Crew) Stop() error {
	var errs []error
	for _, child := range slices.Backward(c.children) {
		errs = append(errs, child.Stop())
	}
	c.children = nil
	return errors.Join(errs...)
}

// A Child is one role in its own process.
type Child struct {
	role  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte
	// ended is closed after the wait for the process; failure is set before.
	ended   chan struct{}
	failure error
	// killed reports that Kill ended it.
	killed atomic.Bool
}

// Like returns a crew without children that starts processes like c, with env added to
// their environment.
func (c *Crew) Like(env ...string) *Crew {
	return &Crew{Args: c.Args, Env: slices.Concat(c.Env, env), Log: c.Log, Within: c.Within}
}

func (c *Crew) started(cmd *exec.Cmd, role string) (*Child, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	start := cmd.Start
	if c.Within != nil {
		start = func() error { return c.Within(cmd.Start) }
	}
	if err := start(); err != nil {
		return nil, err
	}
	child := &Child{role: role, cmd: cmd, in: in, lines: make(chan []byte, 1), ended: make(chan struct{})}
	go child.follow(out)
	return child, nil
}

// follow forwards the child's lines and reaps the child when they end.
func (c *Child) follow(out io.Reader) {
	defer close(c.ended)
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		c.lines <- line
	}
	close(c.lines)
	c.failure = c.cmd.Wait()
}

// Ask sends a request and decodes the answer into value, unless value is nil. After an
// answer that came too late the child cannot be used any more.
func (c *Child) Ask(ctx context.Context, request, value any) error {
	line, err := schema.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding a request to the role %s: %w", c.role, err)
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("the role %s does not read requests: %w", c.role, err)
	}
	select {
	case line, ok := <-c.lines:
		if !ok {
			return c.died()
		}
		return decoded(line, value)
	case <-ctx.Done():
		return fmt.Errorf("waiting for the role %s: %w", c.role, context.Cause(ctx))
	}
}

func (c *Child) died() error {
	<-c.ended
	return fmt.Errorf("the role %s ended before it answered: %w", c.role, errors.Join(c.failure, io.EOF))
}

func decoded(line []byte, value any) error {
	var r reply
	if err := schema.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("an answer is not a line of JSON: %w", err)
	}
	if r.Error != "" {
		return errors.New(r.Error)
	}
	if value == nil || len(r.Value) == 0 {
		return nil
	}
	return schema.Unmarshal(r.Value, value)
}

// Kill kills the child and its process group at once, as a power cut would, and waits until
// it has ended. Its exit status is not an error then. A concurrent Ask returns an error.
// Stop must not run at the same time.
func (c *Child) Kill() error {
	c.killed.Store(true)
	select {
	case <-c.ended: // its id may be another process's by now
		return nil
	default:
		return c.kill()
	}
}

// Freeze stops the child and its process group, as an overloaded machine would, until
// [Child.Thaw].
func (c *Child) Freeze() error { return c.signal(syscall.SIGSTOP) }

// Thaw lets the child and its process group continue.
func (c *Child) Thaw() error { return c.signal(syscall.SIGCONT) }

// signal sends a signal to the child's process group, unless the child has ended.
func (c *Child) signal(s syscall.Signal) error {
	select {
	case <-c.ended: // its id may be another process's by now
		return nil
	default:
	}
	if err := syscall.Kill(-c.Pid(), s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %v to the role %s: %w", s, c.role, err)
	}
	return nil
}

// Ended returns a channel that is closed after the child's process has ended, for any
// reason.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Pid returns the id of the child's process and of its process group.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Stop closes the child's input and waits until it has ended. After a time limit it kills
// the child's process group. A second Stop does nothing.
func (c *Child) Stop() error {
	if c.killed.Load() {
		return nil
	}
	_ = c.in.Close() // the child may have ended and closed the pipe
	late := time.NewTimer(2 * grace)
	defer late.Stop()
	var said error
	for lines := c.lines; ; {
		select {
		case <-c.ended:
			for line := range c.lines { // closed, but not empty
				said = decoded(line, nil)
			}
			if c.failure != nil {
				return fmt.Errorf("the role %s ended with an error: %w", c.role, errors.Join(c.failure, said))
			}
			return nil
		case line, ok := <-lines: // a late answer without a caller, or the error that the child ends with
			if !ok {
				lines = nil
				continue
			}
			said = decoded(line, nil)
		case <-late.C:
			return errors.Join(fmt.Errorf("the role %s did not end and was killed", c.role), c.kill())
		}
	}
}

// kill kills the child's process group. It is not an error if the group has already ended.
func (c *Child) kill() error {
	err := syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	for range c.lines {
	}
	<-c.ended
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
