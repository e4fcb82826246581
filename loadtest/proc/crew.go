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

// A Crew is the children of one parent. It is not safe for many goroutines.
type Crew struct {
	// Args go before the role's name on a child's command line.
	Args []string
	// Env is what children have in their environment beside what this process has.
	Env []string
	// Log takes what the children say on standard error; nil: nobody listens.
	Log *os.File
	// Within starts what it is given somewhere else, as on another host; nil: here.
	Within func(start func() error) error

	children []*Child
}

// Start starts a child, gives it its configuration and waits until it is up.
// Facts takes what the role tells of itself; nil: the parent does not ask.
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

// Environ is that of this process, without what configures the fabric: a load test
// must never meet the fabric that whoever runs it uses, unless it is told to.
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

// A Child is one role in a process of its own.
type Child struct {
	role  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte
	// ended is closed once the process was waited for; failure is set before.
	ended   chan struct{}
	failure error
	// killed is that Kill ended it.
	killed atomic.Bool
}

// Like is a crew without children whose processes are started like those of this one,
// with env in their environment, too.
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

// follow hands on the child's lines and reaps it when they end.
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

// Ask sends a request and decodes the answer into value, unless that is nil.
// After an answer that did not come in time the child is of no more use.
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

// decoded reads an answer line.
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

// Kill ends the child and its whole group at once, as a power cut would, and
// waits until it is gone. Nothing is wrong with a child that ended so. An Ask
// beside it ends with an error; a Stop must not run beside it.
func (c *Child) Kill() error {
	c.killed.Store(true)
	select {
	case <-c.ended: // its id may be another process's by now
		return nil
	default:
		return c.kill()
	}
}

// Freeze stops the child and its whole group where they are, as a machine does
// that has no time for them. They are there, and do nothing, until [Child.Thaw].
func (c *Child) Freeze() error { return c.signal(syscall.SIGSTOP) }

// Thaw has the child and its group go on.
func (c *Child) Thaw() error { return c.signal(syscall.SIGCONT) }

// signal sends a signal to the child's group, unless that has ended.
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

// Ended is closed once the child was waited for, whatever ended it.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Pid is the id of the child's process, and of its group.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Stop closes the child's input, waits until it has ended, and ends it and its
// whole group by force if it does not. A second Stop does nothing.
func (c *Child) Stop() error {
	if c.killed.Load() {
		return nil
	}
	_ = c.in.Close() // it may have ended, and closed the pipe, by itself
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
		case line, ok := <-lines: // an answer that nobody waits for any more, or why it ends badly
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

// kill ends the child's process group. One that has ended by itself meanwhile
// is no failure.
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
