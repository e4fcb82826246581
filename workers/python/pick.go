package python

// maxShared is how many coroutines share a host.
const maxShared = 64

// fewShared is the number of coroutines in a host from which on the next one uses an
// idle host, within the configured number of hosts.
const fewShared = 8

// pick seats c in the best host for it, or returns nil if no host is free.
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
	// During the import of the function, the host can do nothing else.
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

// pickIdle returns the idle host that suits f best, and the oldest of equals, so that hosts
// that are not needed stay idle.
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

// pickShared returns the host with the fewest coroutines that f can share, or an idle one
// if that is better. It returns nil if there is neither.
func (p *pool) pickShared(f *function) (best *host) {
	sharing := p.count(func(h *host) bool { return h.shared > 0 })
	for _, h := range p.hosts {
		if h.shared == 0 || h.shared >= maxShared || h.old || !h.knows[f.number] {
			continue
		}
		if best == nil || h.shared < best.shared {
			best = h
		}
	}
	if best != nil && best.shared >= fewShared && sharing < p.site.limits.Hosts {
		if h := p.pickIdle(f); h != nil && h.knows[f.number] {
			return h
		}
	}
	return best
}
