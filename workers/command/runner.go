package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
)

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
