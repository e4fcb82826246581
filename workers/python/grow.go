package python

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// maxRest bounds how long no host is started after one that could not be.
const maxRest = 10 * time.Second

// rest is the pause after hosts that could not be started.
type rest struct {
	until    time.Time
	failures int
	why      error
}

// grow starts hosts until there are as many as there shall be that are not held
// up, and as many in all as there were lately, as far as there may be.
func (p *pool) grow() {
	for !p.closed && p.scarce() && time.Now().After(p.rest.until) {
		h := newHost(p)
		p.hosts = append(p.hosts, h)
		p.running.Go(func() { p.run(h) })
	}
}

func (p *pool) scarce() bool {
	now := p.current()
	return (p.able() < p.site.limits.Hosts || now < p.peak) && now < p.site.most()
}

// able is how many hosts are there, or on their way, for the next calls.
func (p *pool) able() int { return p.count(func(h *host) bool { return !h.slow && !h.old }) }

// current is how many hosts are there that will not be replaced.
func (p *pool) current() int { return p.count(func(h *host) bool { return !h.old }) }

func (p *pool) count(is func(*host) bool) (n int) {
	for _, h := range p.hosts {
		if is(h) {
			n++
		}
	}
	return n
}

// run is the life of a host in its pool.
func (p *pool) run(h *host) {
	p.mu.Lock()
	functions := slices.Clone(p.functions)
	p.mu.Unlock()
	known, err := h.begin(functions)
	if err == nil {
		p.open(h, known)
	} else {
		h.stop(err)
	}
	if h.process != nil {
		<-h.done
	}
	if why := h.unexpected(); err == nil && why != nil {
		p.runner.log.Warn("python host ended before its time", "interpreter", p.site.interpreter, "error", why)
	}
	p.gone(h, err)
}

// begin starts the process, has it import functions, and returns those it knows.
func (h *host) begin(functions []*function) (map[uint32]bool, error) {
	if err := h.start(); err != nil {
		return nil, err
	}
	at := &h.pool.site
	b := beginning{
		Dirs: at.dirs, Memory: at.limits.Memory, Most: schema.MaxResult,
		Words: wordsSource, Loop: loopSource, Massgen: massgenSource, Functions: []loading{},
	}
	for _, f := range functions {
		b.Functions = append(b.Functions, loading{f.number, f.handler})
	}
	first, err := schema.Marshal(b)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.pool.runner.wait.loading)
	defer cancel()
	a := answer{}
	if err = h.write(timeLeft(ctx), frame(0, []byte(hostSource))); err == nil {
		a, err = h.ask(ctx, first, errors.New("it was not ready in time"))
	}
	if lost, ok := errors.AsType[*lostError](err); ok {
		err = lost.why
	}
	if err != nil {
		return nil, fmt.Errorf("no host could be started with %s: %w", at.interpreter, err)
	}
	known := make(map[uint32]bool)
	for _, number := range a.Loaded {
		known[number] = true
	}
	return known, nil
}

// open lets calls into a host that has started.
func (p *pool) open(h *host, known map[uint32]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = rest{}
	h.ready, h.knows = true, known
	if p.closed {
		h.stop(errClosed)
		return
	}
	p.seatWaiting()
	p.teach()
	p.trim()
}

// gone takes a host that has ended off the books, and starts another one if one
// is due: at once, unless it could not even be started.
func (p *pool) gone(h *host, failed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(h)
	if failed != nil && !p.closed {
		p.runner.log.Error("python host could not be started", "interpreter", p.site.interpreter, "error", failed)
		pause := min(100*time.Millisecond<<min(p.rest.failures, 10), maxRest)
		p.rest = rest{until: time.Now().Add(pause), failures: p.rest.failures + 1, why: failed}
		time.AfterFunc(pause, p.regrow)
	}
	p.grow()
	if len(p.hosts) > 0 {
		return
	}
	for _, w := range p.waiting {
		close(w.got)
	}
	p.waiting = nil
}

func (p *pool) regrow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grow()
}

// slow is told that h sits in a call for longer than a moment: what comes next
// must not wait behind it, and as many hosts as it takes for that are kept for a
// while.
func (p *pool) slow(h *host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.slow = true
	p.peak = max(p.peak, min(p.site.limits.Hosts+p.held(), p.site.most()))
	p.grow()
	if !p.sweeping && !p.closed {
		p.sweeping = true
		time.AfterFunc(p.runner.wait.linger, p.sweep)
	}
}

// held is how many hosts are held up.
func (p *pool) held() int { return p.count(func(h *host) bool { return h.slow }) }

// sweep forgets how many hosts there had to be before.
func (p *pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peak = p.site.limits.Hosts + p.held()
	p.trim()
	if p.sweeping = p.current() > p.site.limits.Hosts && !p.closed; p.sweeping {
		time.AfterFunc(p.runner.wait.linger, p.sweep)
	}
}

// retire has an idle host leave.
func (p *pool) retire(h *host) {
	h.ready = false
	p.remove(h)
	if !p.closed {
		p.running.Go(h.leave)
	}
}

// trim has idle hosts leave that are not needed any more: those that have served
// as many calls as they may, once there are others, and the youngest of those
// that are more than there had to be lately.
func (p *pool) trim() {
	enough := p.count(func(h *host) bool { return h.ready && !h.old }) >= p.site.limits.Hosts
	for _, h := range slices.Backward(slices.Clone(p.hosts)) {
		if h.idle() && (h.old && enough || !h.old && p.current() > max(p.peak, p.site.limits.Hosts)) {
			p.retire(h)
		}
	}
}
