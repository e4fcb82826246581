package python

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// maxStartBackoff is the longest pause after a host that could not be started.
const maxStartBackoff = 10 * time.Second

// startBackoff is the pause after hosts that could not be started.
type startBackoff struct {
	until    time.Time
	failures int
	why      error
}

// grow starts hosts until the configured number is not slow, and until there are as many
// as recently, within the limits of the site.
func (p *pool) grow() {
	for !p.closed && p.scarce() && time.Now().After(p.startBackoff.until) {
		h := newHost(p)
		p.hosts = append(p.hosts, h)
		p.running.Go(func() { p.run(h) })
	}
}

func (p *pool) scarce() bool {
	now := p.current()
	return (p.able() < p.site.limits.Hosts || now < p.peak) && now < p.site.most()
}

// able counts the hosts, started or starting, that can take the next calls.
func (p *pool) able() int { return p.count(func(h *host) bool { return !h.slow && !h.old }) }

// current counts the hosts that will not be replaced.
func (p *pool) current() int { return p.count(func(h *host) bool { return !h.old }) }

func (p *pool) count(is func(*host) bool) (n int) {
	for _, h := range p.hosts {
		if is(h) {
			n++
		}
	}
	return n
}

// run starts a host, follows it, and removes it from the pool at its end.
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
		p.runner.log.Warn("python host ended unexpectedly", "interpreter", p.site.interpreter, "error", why)
	}
	p.gone(h, err)
}

// begin starts the process, lets it import functions, and returns the imported ones.
func (h *host) begin(functions []*function) (map[uint32]bool, error) {
	if err := h.start(); err != nil {
		return nil, err
	}
	at := &h.pool.site
	b := beginning{
		Dirs: at.dirs, Memory: at.limits.Memory, Most: schema.MaxResult,
		Words: wordsSource, Loop: loopSource, Massgen: massgenSource, Builtins: massgenBuiltins, Functions: []loading{},
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
		return nil, fmt.Errorf("a host could not be started with %s: %w", at.interpreter, err)
	}
	known := make(map[uint32]bool)
	for _, number := range a.Loaded {
		known[number] = true
	}
	return known, nil
}

// open makes a started host available to calls.
func (p *pool) open(h *host, known map[uint32]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startBackoff = startBackoff{}
	h.ready, h.knows = true, known
	if p.closed {
		h.stop(errClosed)
		return
	}
	p.seatWaiting()
	p.importInIdleHosts()
	p.trim()
}

// gone removes a host that has ended, and starts another one if the pool needs one. After
// a failed start it waits first.
func (p *pool) gone(h *host, failed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(h)
	if failed != nil && !p.closed {
		p.runner.log.Error("python host could not be started", "interpreter", p.site.interpreter, "error", failed)
		pause := min(100*time.Millisecond<<min(p.startBackoff.failures, 10), maxStartBackoff)
		p.startBackoff = startBackoff{until: time.Now().Add(pause), failures: p.startBackoff.failures + 1, why: failed}
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

// slow records that a call in h takes long. It starts another host for later calls, and
// keeps as many hosts as are needed now for a while.
func (p *pool) slow(h *host) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.slow = true
	p.peak = max(p.peak, min(p.site.limits.Hosts+p.countSlow(), p.site.most()))
	p.grow()
	if !p.sweeping && !p.closed {
		p.sweeping = true
		time.AfterFunc(p.runner.wait.linger, p.sweep)
	}
}

// countSlow counts the slow hosts.
func (p *pool) countSlow() int { return p.count(func(h *host) bool { return h.slow }) }

// sweep lowers the number of hosts to keep to the current need.
func (p *pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peak = p.site.limits.Hosts + p.countSlow()
	p.trim()
	if p.sweeping = p.current() > p.site.limits.Hosts && !p.closed; p.sweeping {
		time.AfterFunc(p.runner.wait.linger, p.sweep)
	}
}

// retire lets an idle host leave.
func (p *pool) retire(h *host) {
	h.ready = false
	p.remove(h)
	if !p.closed {
		p.running.Go(h.leave)
	}
}

// trim retires idle hosts that are not needed: hosts that have served their number of
// calls, once there are others, and the youngest hosts above the recent need.
func (p *pool) trim() {
	enough := p.count(func(h *host) bool { return h.ready && !h.old }) >= p.site.limits.Hosts
	for _, h := range slices.Backward(slices.Clone(p.hosts)) {
		if h.idle() && (h.old && enough || !h.old && p.current() > max(p.peak, p.site.limits.Hosts)) {
			p.retire(h)
		}
	}
}
