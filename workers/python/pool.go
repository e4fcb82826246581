package python

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// maxShared is how many coroutines share a host.
const maxShared = 64

// fewShared is from how many on coroutines use a second host, if it is idle.
const fewShared = 8

// pool is the hosts of one site and who waits for one of them.
type pool struct {
	runner  *Runner
	site    site
	users   int            // handlers; guarded by Runner.mu
	running sync.WaitGroup // of hosts, added to only under mu while not closed

	mu        sync.Mutex // guards what follows and the seats of the hosts
	closed    bool
	hosts     []*host // the oldest first
	waiting   []*waiter
	functions []*function
	numbers   uint32 // of the last function
	rest      rest
	peak      int // how many hosts there were lately, held up or not, to be prepared
	sweeping  bool
}

// seat is what a pool knows of one of its hosts.
type seat struct {
	ready  bool // it has started
	alone  bool // a call has it for itself
	shared int  // coroutines that share it
	slow   bool // it sits in a call for longer than a moment
	old    bool // it has served as many calls as it may, or is spent
	spent  bool // it is good for nothing more
	calls  int
	knows  map[uint32]bool
}

func (s *seat) idle() bool { return s.ready && !s.alone && s.shared == 0 }

// function is what one or more hooks call.
type function struct {
	number  uint32
	handler string
	async   atomic.Bool
	blocks  atomic.Bool // it was seen to block its event loop
	users   int         // guarded by pool.mu
}

// waiter is a call without a host.
type waiter struct {
	call *call
	got  chan *host // closed when there will be none
}

func newPool(r *Runner, s site) *pool { return &pool{runner: r, site: s} }

// load has a host import the function that handler names, unless that was done.
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
	c := &call{function: f, alone: true}
	h, err := p.take(ctx, c)
	if err != nil {
		return nil, err
	}
	err = h.load(ctx, f)
	p.give(h, c)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.functions = append(p.functions, f)
	p.teach()
	return f, nil
}

// forget counts down who needs f.
func (p *pool) forget(f *function) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.users--; f.users == 0 {
		p.functions = slices.DeleteFunc(p.functions, func(g *function) bool { return g == f })
	}
}

// teach has idle hosts import what they do not know, so that no call has to
// wait for that.
func (p *pool) teach() {
	for _, h := range p.hosts {
		if !h.idle() || len(h.ignorant(p.functions)) == 0 {
			continue
		}
		h.alone = true
		fs := h.ignorant(p.functions)
		p.running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), p.runner.wait.loading)
			defer cancel()
			for _, f := range fs {
				if h.load(ctx, f) != nil {
					break // the call that needs it says why
				}
			}
			p.give(h, &call{alone: true})
		})
	}
}

// ignorant are the functions that h does not know.
func (s *seat) ignorant(fs []*function) (unknown []*function) {
	for _, f := range fs {
		if !s.knows[f.number] {
			unknown = append(unknown, f)
		}
	}
	return unknown
}

// take returns a host for c, which then has a place in it, until give.
func (p *pool) take(ctx context.Context, c *call) (*host, error) {
	p.mu.Lock()
	if p.closed {
		defer p.mu.Unlock()
		return nil, p.failure()
	}
	if len(p.waiting) == 0 {
		if h := p.pick(c); h != nil {
			p.mu.Unlock()
			return h, nil
		}
	}
	p.grow()
	if len(p.hosts) == 0 {
		defer p.mu.Unlock()
		return nil, p.failure()
	}
	w := &waiter{call: c, got: make(chan *host, 1)}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	select {
	case h, ok := <-w.got:
		if ok {
			return h, nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return nil, p.failure()
	case <-ctx.Done():
		return nil, p.abandon(ctx, w)
	}
}

// failure is why there will be no host.
func (p *pool) failure() error {
	if p.closed {
		return fmt.Errorf("was not called: %w", errClosed)
	}
	return fmt.Errorf("was not called: %w", p.rest.why)
}

// abandon takes w out of the queue, or gives back what it just got.
func (p *pool) abandon(ctx context.Context, w *waiter) error {
	p.mu.Lock()
	p.waiting = slices.DeleteFunc(p.waiting, func(o *waiter) bool { return o == w })
	hosts := len(p.hosts)
	p.mu.Unlock()
	select {
	case h := <-w.got:
		if h != nil {
			p.give(h, w.call)
		}
	default:
	}
	return fmt.Errorf("was not called: none of the %d hosts became free in time: %w", hosts, context.Cause(ctx))
}

// pick seats c in the best host there is for it; nil: there is none.
func (p *pool) pick(c *call) *host {
	var best *host
	if !c.alone {
		best = p.pickShared(c.function)
	}
	if best == nil {
		best = p.pickIdle(c.function)
	}
	if best == nil {
		return nil
	}
	// A host that has yet to import the function can meanwhile do nothing else.
	if !best.knows[c.function.number] {
		c.alone = true
	}
	if best.alone = c.alone; !c.alone {
		best.shared++
	}
	best.calls++
	if n := p.site.limits.Recycle; n > 0 && best.calls >= n && !best.old {
		best.old = true
		p.grow()
	}
	return best
}

// pickIdle is the idle host that suits f best, the oldest of equals, so that
// those which are not needed stay idle.
func (p *pool) pickIdle(f *function) (best *host) {
	rank := func(h *host) int {
		switch {
		case h.old:
			return 1
		case !h.knows[f.number]:
			return 2
		}
		return 3
	}
	for _, h := range p.hosts {
		if h.idle() && (best == nil || rank(h) > rank(best)) {
			best = h
		}
	}
	return best
}

// pickShared is the host with the fewest coroutines that f can share; nil: an
// idle one is better, or there is none.
func (p *pool) pickShared(f *function) (best *host) {
	for _, h := range p.hosts {
		if h.shared == 0 || h.shared >= maxShared || h.old || !h.knows[f.number] {
			continue
		}
		if best == nil || h.shared < best.shared {
			best = h
		}
	}
	if best != nil && best.shared >= fewShared {
		if h := p.pickIdle(f); h != nil && h.knows[f.number] {
			return h
		}
	}
	return best
}

// give gives back the place of c in h.
func (p *pool) give(h *host, c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.alone {
		h.alone = false
	} else {
		h.shared--
	}
	if c.spent {
		h.old, h.spent = true, true
	}
	if h.idle() {
		p.tidy(h)
	}
	p.seatWaiting()
	p.trim()
}

// tidy looks after a host whose last call has ended.
func (p *pool) tidy(h *host) {
	h.slow = false
	select {
	case <-h.done:
		p.remove(h)
	default:
		if h.spent {
			p.retire(h)
		}
	}
	p.grow()
}

// remove takes a host off the books.
func (p *pool) remove(h *host) {
	p.hosts = slices.DeleteFunc(p.hosts, func(o *host) bool { return o == h })
}

// seatWaiting gives hosts to those who wait, in order.
func (p *pool) seatWaiting() {
	for len(p.waiting) > 0 {
		h := p.pick(p.waiting[0].call)
		if h == nil {
			return
		}
		p.waiting[0].got <- h
		p.waiting = p.waiting[1:]
	}
}

// close ends the pool: those who wait get nothing, and all hosts are reaped.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, w := range p.waiting {
		close(w.got)
	}
	p.waiting = nil
	for _, h := range p.hosts {
		if h.idle() {
			p.running.Go(h.leave)
		} else {
			h.stop(errClosed)
		}
	}
	p.mu.Unlock()
	p.running.Wait()
}
