package python

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/internal/child"
)

// Options configure a Runner.
type Options struct {
	// Logger is where the runner logs (default: slog's default). It gets tracebacks at
	// warn level, and the output of functions at debug level.
	Logger *slog.Logger
	// Watchdog is the command line of the watchdog over hosts and their child
	// processes, see command.SelfWatchdog; empty means no watchdog.
	Watchdog []string
	// Environ is the worker's environment in the form of os.Environ (default: os.Environ()).
	Environ []string
}

// A Runner runs functions. It is safe for many goroutines.
type Runner struct {
	log     *slog.Logger
	environ []string
	guard   *child.Guard
	wait    waits

	mu     sync.Mutex
	closed bool             // guarded by mu
	pools  map[string]*pool // by site.key; guarded by mu
}

// waits are the time limits of a runner.
type waits struct {
	loading time.Duration // for the import of a module, and for the start of a host
	slow    time.Duration // after which a call makes its host a slow one
	stall   time.Duration // after which an event loop is suspected, and again for its answer
	grace   time.Duration // for the end of a cancelled coroutine, and of a host that leaves
	linger  time.Duration // after which a host that is not needed leaves
}

var _ workers.Runner = (*Runner)(nil)

// errClosed is the error of calls during and after Close.
var errClosed = errors.New("the worker is stopping")

// New makes a Runner. It starts nothing before the first function is loaded.
func New(opt Options) *Runner {
	opt.Logger = cmp.Or(opt.Logger, slog.Default())
	if opt.Environ == nil {
		opt.Environ = os.Environ()
	}
	return &Runner{
		log: opt.Logger, environ: opt.Environ, guard: child.NewGuard(opt.Watchdog, opt.Logger), pools: make(map[string]*pool),
		wait: waits{
			loading: 20 * time.Second, slow: 50 * time.Millisecond, stall: 500 * time.Millisecond,
			grace: 250 * time.Millisecond, linger: 30 * time.Second,
		},
	}
}

// Load lets a host import the function of h.
func (r *Runner) Load(h schema.Hook, at workers.Site) (workers.Handler, error) {
	s, err := newSite(r.environ, h, at)
	if err != nil {
		return nil, err
	}
	p, err := r.join(s)
	if err != nil {
		return nil, err
	}
	f, err := p.load(h.Handler)
	if err != nil {
		r.leave(p)
		return nil, fmt.Errorf("%q cannot be imported: %w; looked in %s", h.Handler, err, s.places())
	}
	return &handler{runner: r, pool: p, function: f, hook: h.Name, name: h.Handler, shares: h.Idempotent}, nil
}

// join returns the pool of s and adds a user to it.
func (r *Runner) join(s site) (*pool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	p := r.pools[s.key()]
	if p == nil {
		p = newPool(r, s)
		r.pools[s.key()] = p
	}
	p.users++
	return p, nil
}

// leave removes a user from a pool, and closes the pool after its last user.
func (r *Runner) leave(p *pool) {
	r.mu.Lock()
	p.users--
	last := p.users == 0
	if last && r.pools[p.site.key()] == p {
		delete(r.pools, p.site.key())
	}
	r.mu.Unlock()
	if last {
		p.close()
	}
}

// Close ends all hosts, waits for them, and ends the watchdog. Later calls fail.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	var all []*pool
	for _, p := range r.pools {
		all = append(all, p)
	}
	r.mu.Unlock()
	var ending sync.WaitGroup
	for _, p := range all {
		ending.Go(p.close)
	}
	ending.Wait()
	r.guard.Close()
	return nil
}

// handler is a hook with an imported function.
type handler struct {
	runner   *Runner
	pool     *pool
	function *function
	hook     string // the hook's name
	name     string // the function's name in the configuration
	shares   bool   // its calls may run again, so a coroutine may share its host
	closing  sync.Once
}

// Handle calls the function. It calls an idempotent hook again if its host was lost.
func (h *handler) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	if ctx.Err() != nil {
		return schema.Result{}, fmt.Errorf("%q was not called: %w", h.name, context.Cause(ctx))
	}
	event, err := schema.Marshal(e)
	if err != nil {
		return schema.Result{}, fmt.Errorf("the event cannot be written as JSON: %w", err)
	}
	if len(event) > schema.MaxPayload+len(e.History) { // the history has a limit of its own
		return schema.Result{}, fmt.Errorf("the event has %d bytes; a hook gets at most %d", len(event), schema.MaxPayload)
	}
	a, err := h.pool.call(ctx, &call{function: h.function, event: event, alone: !h.shares})
	if err != nil {
		return schema.Result{}, fmt.Errorf("%q %w", h.name, err)
	}
	return h.judge(ctx, e.HookType, a)
}

// judge converts a host's answer to the hook's answer.
func (h *handler) judge(ctx context.Context, t schema.EventType, a answer) (schema.Result, error) {
	if a.Noted != "" {
		h.runner.log.WarnContext(ctx, "hook condition raised an exception and counts as true", "hook", h.hook, "handler", h.name, "traceback", a.Doubt)
	}
	if err := a.fault(); err != nil {
		if a.Traceback != "" {
			h.runner.log.WarnContext(ctx, "hook raised an exception", "hook", h.hook, "handler", h.name, "traceback", a.Traceback)
		}
		return schema.Result{}, fmt.Errorf("%q %w%s", h.name, err, a.besides())
	}
	var res schema.Result
	if len(a.Result) > 0 {
		var err error
		if res, err = schema.DecodeResult(t, a.Result); err != nil {
			return schema.Result{}, fmt.Errorf("%q: %w%s", h.name, err, a.besides())
		}
	}
	if a.Noted != "" {
		res.HookErrors = append([]string{a.Noted}, res.HookErrors...)
	}
	return res, nil
}

// Close releases the function and its pool.
func (h *handler) Close() error {
	h.closing.Do(func() {
		h.pool.forget(h.function)
		h.runner.leave(h.pool)
	})
	return nil
}

// function is a function that one or more hooks call.
type function struct {
	number  uint32
	handler string
	async   atomic.Bool
	blocks  atomic.Bool // it has blocked its event loop
	users   int         // guarded by pool.mu
}

// load returns the function that handler names. A host imports it, unless one already did.
func (p *pool) load(handler string) (*function, error) {
	p.mu.Lock()
	for _, f := range p.functions {
		if f.handler == handler {
			f.users++
			p.mu.Unlock()
			return f, nil
		}
	}
	p.numbers++
	f := &function{number: p.numbers, handler: handler, users: 1}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), p.runner.wait.loading)
	defer cancel()
	if err := p.importFunction(ctx, f); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.functions = append(p.functions, f)
	p.importInIdleHosts()
	return f, nil
}

// importFunction lets a host import f. If the host ended before, it tries another one.
func (p *pool) importFunction(ctx context.Context, f *function) error {
	for try := 1; ; try++ {
		c := &call{function: f, alone: true}
		h, err := p.take(ctx, c)
		if err != nil {
			return err
		}
		err = h.load(ctx, f)
		p.give(h, c)
		if lost, ok := errors.AsType[*lostError](err); !ok || lost.sent || try == tries {
			return err
		}
	}
}

// forget removes one user of f.
func (p *pool) forget(f *function) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.users--; f.users == 0 {
		p.functions = slices.DeleteFunc(p.functions, func(g *function) bool { return g == f })
	}
}

// importInIdleHosts lets idle hosts import functions that they lack, so that calls do not wait for
// imports.
func (p *pool) importInIdleHosts() {
	for _, h := range p.hosts {
		if p.closed || !h.idle() || len(h.missing(p.functions)) == 0 {
			continue
		}
		h.alone = true
		fs := h.missing(p.functions)
		p.running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), p.runner.wait.loading)
			defer cancel()
			for _, f := range fs {
				if h.load(ctx, f) != nil {
					break // a call of the function reports the error
				}
			}
			p.give(h, &call{alone: true})
		})
	}
}

// missing returns the functions that s has not imported.
func (s *seat) missing(fs []*function) (unknown []*function) {
	for _, f := range fs {
		if !s.knows[f.number] {
			unknown = append(unknown, f)
		}
	}
	return unknown
}

func (p *pool) knows(h *host, f *function) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return h.knows[f.number]
}

// load lets h import f. The caller must have h to itself.
func (h *host) load(ctx context.Context, f *function) error {
	body, err := schema.Marshal(loading{f.number, f.handler})
	if err != nil {
		return err
	}
	a, err := h.ask(ctx, body, errors.New("the import of its module did not end in time"))
	if a.Traceback != "" {
		h.pool.runner.log.Warn("hook function cannot be imported", "handler", f.handler, "traceback", a.Traceback)
	}
	if a.Raised {
		return errors.New(a.Error)
	}
	if err == nil {
		h.pool.setImported(h, f, a.Async)
	}
	return err
}

func (p *pool) setImported(h *host, f *function, async bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.knows[f.number] = true
	f.async.Store(async)
}
