package python

// maxShared is how many coroutines share a host.
const maxShared = 64

// fewShared is from how many on coroutines use one more host, if it is idle and
// not one of those that were added for calls that are held up.
const fewShared = 8

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
