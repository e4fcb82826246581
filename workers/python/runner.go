package python

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/child"
)

// Options are what a Runner needs.
type Options struct {
	// Logger; nil: slog's default. Tracebacks go there at warn level, and what
	// functions print at debug level.
	Logger *slog.Logger
	// Watchdog is the command line of the watchdog over hosts and what they
	// start, see [child.SelfWatchdog]; empty: there is none.
	Watchdog []string
	// Environ is the worker's environment as os.Environ has it; nil: os.Environ.
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
	pools  map[string]*pool // by what makes hosts interchangeable; guarded by mu
}

// waits are how long things are waited for.
type waits struct {
	loading time.Duration // for a module to be imported, and for a host to start
	slow    time.Duration // until a host that sits in a call counts as taken
	stall   time.Duration // for an event loop to be suspected, and again to answer
	grace   time.Duration // for a coroutine to end, and for a host to leave
	linger  time.Duration // until a host that is not needed any more leaves
}

var _ workers.Runner = (*Runner)(nil)

// errClosed is the answer to calls that were made, or still ran, when the
// runner was closed.
var errClosed = errors.New("the worker is stopping")

// New makes a Runner. It starts nothing before the first function is loaded.
func New(opt Options) *Runner {
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
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

// Load has a host import the function of h.
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
		return nil, fmt.Errorf("%q can not be imported: %w; looked in %s", h.Handler, err, s.places())
	}
	return &handler{runner: r, pool: p, function: f, hook: h.Name, name: h.Handler, shares: h.Idempotent}, nil
}

// join finds or makes the pool of s, and counts who needs it.
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

// leave ends a pool that nobody needs any more.
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

// Close ends all hosts, waits for them, and ends the watchdog. Calls that come
// later are errors.
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
