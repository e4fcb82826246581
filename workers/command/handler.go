package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
)

// blockExit is the exit code with which a program blocks.
const blockExit = 2

// handler is a hook whose program was found.
type handler struct {
	runner *Runner
	hook   string // the hook's name
	name   string // the program as the configuration calls it
	argv   []string
	dir    string
	env    environ
}

// Handle runs the program once. It returns after the program's process has ended.
func (h *handler) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	if err := h.runner.enter(ctx); err != nil {
		return schema.Result{}, fmt.Errorf("%q %w", h.name, err)
	}
	defer h.runner.running.Done()
	stdin, err := encode(e)
	if err != nil {
		return schema.Result{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.runner.life, func() { cancel(context.Cause(h.runner.life)) })()

	p, err := start(ctx, h, h.env.of(e, trace.From(ctx)))
	if err != nil {
		return schema.Result{}, fmt.Errorf("%q did not start: %w", h.name, err)
	}
	return h.judge(ctx, e.HookType, p.finish(ctx, stdin))
}

// judge turns the end of a program into its answer.
func (h *handler) judge(ctx context.Context, t schema.EventType, end ending) (schema.Result, error) {
	switch {
	case end.cause != nil:
		return schema.Result{}, fmt.Errorf("the worker killed %q and all processes that it started: %w", h.name, end.cause)
	case end.flooded:
		return schema.Result{}, fmt.Errorf("%q printed more than %d bytes, the limit of an answer", h.name, schema.MaxResult)
	case end.err != nil:
		return schema.Result{}, fmt.Errorf("%q was lost: %w", h.name, end.err)
	}
	switch code := end.state.ExitCode(); code {
	case 0:
		h.note(ctx, end.stderr)
		return h.answer(t, end)
	case blockExit:
		return schema.Blocked(t, h.reason(end.stderr)), nil
	case -1:
		return schema.Result{}, fmt.Errorf("%q was ended by a signal (%v)%s", h.name, end.state, child.LastWords(end.stderr))
	default:
		return schema.Result{}, fmt.Errorf("%q exited with code %d%s", h.name, code, child.LastWords(end.stderr))
	}
}

// answer reads the output of a program that exited with 0.
func (h *handler) answer(t schema.EventType, end ending) (schema.Result, error) {
	out := bytes.TrimSpace(end.stdout)
	if len(out) == 0 && end.held {
		return schema.Result{}, fmt.Errorf("%q exited while a process that it started kept its standard output open, so the answer is incomplete; wait for that process, or start it with >/dev/null", h.name)
	}
	if len(out) == 0 {
		return schema.Result{}, nil
	}
	res, err := schema.DecodeResult(t, out)
	if err != nil {
		return schema.Result{}, fmt.Errorf("%q: %w", h.name, err)
	}
	return res, nil
}

// reason returns why a program blocks: its standard error.
func (h *handler) reason(stderr []byte) string {
	if s := child.Readable(stderr); s != "" {
		return s
	}
	return fmt.Sprintf("blocked by the hook %q, which gave no reason", h.hook)
}

// note logs the standard error of a successful program.
func (h *handler) note(ctx context.Context, stderr []byte) {
	if len(stderr) > 0 && h.runner.log.Enabled(ctx, slog.LevelDebug) {
		h.runner.log.DebugContext(ctx, "the hook wrote to its standard error", "hook", h.hook, "stderr", child.Readable(stderr))
	}
}

// input is the standard input of a program: the event, and members under the names of
// Claude Code.
type input struct {
	HookEventName string `json:"hook_event_name"`
	workers.Input
	ToolResponse jsontext.Value `json:"tool_response,omitzero"`
}

// encode returns the standard input of a call about e. It is encoded for each hook, which
// costs a thousandth of starting a process. A cache would have to detect rewrites.
func encode(e *schema.Event) ([]byte, error) {
	in, err := workers.NewInput(e)
	var b []byte
	if err == nil {
		b, err = schema.Marshal(input{HookEventName: claudeName(e.HookType), Input: in, ToolResponse: e.ToolOutput})
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the event as JSON: %w", err)
	}
	return append(b, '\n'), nil
}

// claudeName returns Claude Code's name of t, or t's own name if it has none.
func claudeName(t schema.EventType) string {
	switch t {
	case schema.ToolError:
		return "PostToolUseFailure"
	case schema.BeforeFinalResponse:
		return "Stop"
	}
	return string(t)
}

// Options configure a [Runner].
type Options struct {
	// Logger is the log; nil: slog's default. It gets the standard error of successful
	// programs at debug level.
	Logger *slog.Logger
	// Watchdog is the command line of the watchdog over programs and their child
	// processes, see [SelfWatchdog]; empty: no watchdog.
	Watchdog []string
	// Environ is the worker's environment in the form of os.Environ; nil means os.Environ.
	Environ []string
}

// SelfWatchdog returns the command line that runs this program as the watchdog, for [Options] of this package
// and of workers/python; nil if the program's path is unknown. Its main must call [RunWatchdog] first.
func SelfWatchdog() []string { return child.SelfWatchdog() }

// RunWatchdog runs the watchdog and exits, if args is the command line of [SelfWatchdog].
func RunWatchdog(args []string) { child.RunWatchdog(args) }

// A Runner runs programs. It is safe for concurrent use.
type Runner struct {
	log     *slog.Logger
	environ []string
	guard   *child.Guard
	grace   time.Duration

	life context.Context // ends when Close begins
	end  context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool           // guarded by mu
	running sync.WaitGroup // incremented only under mu while not closed
}

var _ workers.Runner = (*Runner)(nil)

// errClosed is the error of calls during and after Close.
var errClosed = errors.New("the worker is stopping")

// New returns a Runner. It starts no process before the first call.
func New(opt Options) *Runner {
	opt.Logger = cmp.Or(opt.Logger, slog.Default())
	if opt.Environ == nil {
		opt.Environ = os.Environ()
	}
	r := &Runner{log: opt.Logger, environ: opt.Environ, grace: defaultGrace}
	r.guard = child.NewGuard(opt.Watchdog, opt.Logger)
	r.life, r.end = context.WithCancelCause(context.Background())
	return r
}

// Load finds the program of h. It runs nothing.
func (r *Runner) Load(h schema.Hook, at workers.Site) (workers.Handler, error) {
	env, err := newEnviron(r.environ, h.Env)
	if err != nil {
		return nil, err
	}
	l := newLookup(child.Absolute(at.Dirs), child.Value(env, "PATH"))
	argv, err := l.argv(h)
	if err != nil {
		return nil, err
	}
	return &handler{runner: r, hook: h.Name, name: h.Handler, argv: argv, dir: l.Workdir(), env: env}, nil
}

// Close kills all running programs, waits for them, and ends the watchdog. Later calls
// fail.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.end(errClosed)
	r.running.Wait()
	r.guard.Close()
	return nil
}

// enter counts a call, or rejects it.
func (r *Runner) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("was not started: %w", context.Cause(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fmt.Errorf("was not started: %w", errClosed)
	}
	r.running.Add(1)
	return nil
}
