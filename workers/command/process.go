package command

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
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

// pipes are the worker's ends of a program's three streams.
type pipes struct {
	in, out, err *os.File
	got          *gathered
	drained      chan struct{} // closed when both outputs have ended
	flood        chan struct{} // closed if there is too much standard output
	writer       *sync.WaitGroup
}

// gathered is a program's output. It is readable after drained is closed.
type gathered struct {
	stdout []byte
	stderr child.Tail
}

// openPipes makes the pipes and returns the program's ends in order.
func openPipes() (p pipes, theirs []*os.File, err error) {
	var ours []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			child.CloseAll(ours)
			child.CloseAll(theirs)
			return pipes{}, nil, err
		}
		if len(ours) == 0 {
			r, w = w, r
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	return pipes{
		in: ours[0], out: ours[1], err: ours[2], got: new(gathered), writer: new(sync.WaitGroup),
		drained: make(chan struct{}), flood: make(chan struct{}),
	}, theirs, nil
}

// run writes the program's input and gathers its output, until cut or its end. A program
// need not read its input.
func (p *pipes) run(stdin []byte) {
	p.writer.Go(func() {
		_, _ = p.in.Write(stdin)
		_ = p.in.Close()
	})
	var readers sync.WaitGroup
	readers.Go(func() {
		p.got.stdout, _ = io.ReadAll(io.LimitReader(p.out, schema.MaxResult+1))
		if len(p.got.stdout) > schema.MaxResult {
			close(p.flood)
		}
	})
	readers.Go(func() { _, _ = io.Copy(&p.got.stderr, child.OnlyReader{Reader: p.err}) })
	go func() {
		readers.Wait()
		close(p.drained)
	}()
}

// cut ends run, even if other processes hold the other ends.
func (p *pipes) cut() {
	now := time.Now()
	_ = p.in.SetWriteDeadline(now)
	_ = p.out.SetReadDeadline(now)
	_ = p.err.SetReadDeadline(now)
}

// result returns the output and whether it was too much. Call it after cut.
func (p *pipes) result() (stdout, stderr []byte, flooded bool) {
	<-p.drained
	p.writer.Wait()
	p.close()
	return p.got.stdout, p.got.stderr.Bytes(), len(p.got.stdout) > schema.MaxResult
}

func (p *pipes) close() { child.CloseAll([]*os.File{p.in, p.out, p.err}) }

// environ is the part of a program's environment that is equal for all calls: name=value
// pairs of the worker.
type environ []string

// newEnviron selects variables from the worker's environment, without those that the
// event decides.
func newEnviron(all, names []string) (environ, error) {
	env, err := child.Environ(all, names)
	return slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return isFact(name)
	}), err
}

// isFact reports whether the event decides the value of name.
func isFact(name string) bool {
	return slices.ContainsFunc(facts(new(schema.Event)), func(f fact) bool { return f.name == name }) ||
		slices.Contains([]string{projectDir, traceParent, traceState}, name)
}

const (
	// projectDir is where scripts for Claude Code read the agent's folder.
	projectDir = "CLAUDE_PROJECT_DIR"
	// traceParent and traceState are OpenTelemetry's variables for a position in a trace.
	traceParent = "TRACEPARENT"
	traceState  = "TRACESTATE"
)

// fact is a variable that comes from the event or its trace.
type fact struct{ name, value string }

func facts(e *schema.Event) []fact {
	return []fact{
		{"HOOK_TYPE", string(e.HookType)},
		{"HOOK_HOOK_TYPE", string(e.HookType)},
		{"MASSGEN_HOOK_TYPE", string(e.HookType)},
		{"HOOK_TOOL_NAME", e.ToolName},
		{"MASSGEN_TOOL_NAME", e.ToolName},
		{"HOOK_SESSION_ID", e.SessionID},
		{"MASSGEN_SESSION_ID", e.SessionID},
		{"HOOK_AGENT_ID", e.AgentID},
		{"MASSGEN_AGENT_ID", e.AgentID},
		{"HOOK_ORCHESTRATOR_ID", e.OrchestratorID},
		{"MASSGEN_ORCHESTRATOR_ID", e.OrchestratorID},
	}
}

// of returns the whole environment of a call about e, at a position in a trace; nil: not
// traced.
func (v environ) of(e *schema.Event, c *trace.Context) []string {
	fs := facts(e)
	if e.Cwd != "" {
		fs = append(fs, fact{projectDir, e.Cwd})
	}
	if c != nil {
		fs = append(fs, fact{traceParent, c.Parent()})
		if c.State != "" {
			fs = append(fs, fact{traceState, c.State})
		}
	}
	env := make([]string, len(v), len(v)+len(fs))
	copy(env, v)
	for _, f := range fs {
		env = append(env, f.name+"="+fit(f.value))
	}
	return env
}

// fit makes s a valid value of a variable. A NUL byte is replaced and not removed, so
// that no name turns into that of another tool.
func fit(s string) string {
	if len(s) > schema.MaxHeader {
		s = strings.ToValidUTF8(s[:schema.MaxHeader], "")
	}
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}
