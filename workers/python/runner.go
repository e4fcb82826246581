package python

import (
	"cmp"
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
