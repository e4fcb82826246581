package python

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

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

// waiter is a call without a host.
type waiter struct {
	call *call
	got  chan *host // closed when there will be none
}

func newPool(r *Runner, s site) *pool { return &pool{runner: r, site: s} }

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
		return errClosed
	}
	return p.rest.why
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
	return fmt.Errorf("none of the %d hosts became free in time: %w", hosts, context.Cause(ctx))
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
