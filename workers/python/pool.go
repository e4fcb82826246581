package python

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// pool has the hosts of one site and the calls that wait for one.
type pool struct {
	runner  *Runner
	site    site
	users   int            // handlers; guarded by Runner.mu
	running sync.WaitGroup // of hosts, added to only under mu while not closed

	mu           sync.Mutex // guards what follows and the seats of the hosts
	closed       bool
	hosts        []*host // the oldest first
	waiting      []*waiter
	functions    []*function
	numbers      uint32 // of the last function
	startBackoff startBackoff
	peak         int // the recent number of hosts, slow ones included
	sweeping     bool
}

// seat is the pool's state of one host.
type seat struct {
	ready  bool // it has started
	alone  bool // a call has it to itself
	shared int  // coroutines that share it
	slow   bool // a call in it takes longer than waits.slow
	old    bool // it has served its number of calls, or is spent
	spent  bool // it must not take another call
	calls  int
	knows  map[uint32]bool
}

func (s *seat) idle() bool { return s.ready && !s.alone && s.shared == 0 }

// waiter is a call without a host.
type waiter struct {
	call *call
	got  chan *host // closed if the call cannot get a host
}

func newPool(r *Runner, s site) *pool { return &pool{runner: r, site: s} }

// take returns a host for c, which has a seat in it until give.
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

// failure returns why calls cannot get a host.
func (p *pool) failure() error {
	if p.closed {
		return errClosed
	}
	return p.startBackoff.why
}

// abandon takes w out of the queue, or gives its host back.
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

// give gives back the seat of c in h.
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

// tidy removes, retires or reuses a host after its last call.
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

// remove removes a host from the pool.
func (p *pool) remove(h *host) {
	p.hosts = slices.DeleteFunc(p.hosts, func(o *host) bool { return o == h })
}

// seatWaiting gives hosts to waiting calls, in order.
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

// close ends the pool. Waiting calls fail, and all hosts are reaped.
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
