package dispatch

import (
	"cmp"
	"slices"
	"time"
)

// turn is a call's place in the queue of a pool. A free slot is handed to the
// first call that can use it, so that no call that comes later takes it away.
type turn struct {
	version uint64
	not     []string // workers that it cannot use
	local   bool     // the worker in this process would do, too
	aside   bool     // nobody waits for it: half of a worker's slots are not for it
	freed   uint64   // how many of its slots had become free when it was full
	// until is when it must be over; zero: that is not known.
	until time.Time
	// ticket is its place; 0: it has not waited yet. A call that has to wait
	// again keeps its place.
	ticket uint64
	// got brings a slot or, as the zero choice, news that make it worth to look
	// again. It has room for one.
	got chan choice
}

// take finds the least loaded worker for t, or the pool's first contact; the
// local worker if that is worth to be tried again. It reports whether t has to
// wait instead, because all are full or silent, and fails with ErrNoWorker if
// all workers but those that t cannot use are gone, or with errQueueFull or errQueueLong.
func (m *Members) take(poolName string, t *turn) (to choice, wait bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pool(poolName)
	best, alive := p.best(t)
	switch {
	case best != nil:
		return best.hold(), false, nil
	case t.local && m.freed.Load() != t.freed:
		// A slot became free that woke nobody, because nobody waited yet.
		return choice{local: true}, false, nil
	case alive || t.local || p.hasSleepers(t.not):
		return choice{}, true, m.enqueue(p, t) // somebody may become free, or wake up
	case len(t.not) > 0:
		return choice{}, false, ErrNoWorker
	}
	return choice{}, false, nil
}

// expect is await while workers may be on their way, and ErrNoWorker after that.
func (m *Members) expect(poolName string, t *turn) (to choice, wait bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !time.Now().Before(m.expected) {
		return choice{}, false, ErrNoWorker
	}
	return m.awaited(poolName, t)
}

// await is take for a call that the pool's first contact has sent back: until
// somebody is known to serve the pool there is nobody to ask.
func (m *Members) await(poolName string, t *turn) (to choice, wait bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.awaited(poolName, t)
}

// awaited is await with the lock held.
func (m *Members) awaited(poolName string, t *turn) (to choice, wait bool, err error) {
	p := m.pool(poolName)
	best, _ := p.best(t)
	switch {
	case best != nil:
		return best.hold(), false, nil
	case t.local && m.freed.Load() != t.freed:
		return choice{local: true}, false, nil
	}
	return choice{}, true, m.enqueue(p, t)
}

// enqueue puts t into the queue, behind all that came before it. A call that
// was in the queue once is not turned away. The lock is held.
func (m *Members) enqueue(p *pool, t *turn) error {
	if t.ticket == 0 {
		if len(p.waiting) >= m.queue {
			return errQueueFull
		}
		now := time.Now()
		p.rush.Look(now, p.done, len(p.waiting))
		if !t.until.IsZero() && !p.rush.InTime(0, t.until.Sub(now), len(p.waiting)) {
			return errQueueLong
		}
		m.tickets++
		t.ticket, t.got = m.tickets, make(chan choice, 1)
	}
	at, _ := slices.BinarySearchFunc(p.waiting, t.ticket, func(w *turn, ticket uint64) int { return cmp.Compare(w.ticket, ticket) })
	p.waiting = slices.Insert(p.waiting, at, t)
	return nil
}

// leave takes a call that no longer waits out of the queue. What it was given
// in the meantime goes to the next.
func (m *Members) leave(poolName string, t *turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pool(poolName)
	if i := slices.Index(p.waiting, t); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return
	}
	if to := <-t.got; to.member != nil {
		to.member.mine--
		p.serve()
	} else {
		p.wakeLocal()
	}
}

// Freed tells that a slot of the local worker became free.
func (m *Members) Freed(poolName string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.freed.Add(1)
	if p := m.pools[poolName]; p != nil {
		p.look()
		p.wakeLocal()
	}
}

// serve hands free slots to those who wait for them, in order.
func (p *pool) serve() {
	for i := 0; i < len(p.waiting) && slices.ContainsFunc(p.members, (*member).takes); {
		t := p.waiting[i]
		if best, _ := p.best(t); best != nil {
			p.waiting = slices.Delete(p.waiting, i, i+1)
			t.got <- best.hold()
			continue
		}
		i++
	}
}

// wakeLocal has the first call that can use the local worker look again.
func (p *pool) wakeLocal() {
	if i := slices.IndexFunc(p.waiting, func(t *turn) bool { return t.local }); i >= 0 {
		t := p.waiting[i]
		p.waiting = slices.Delete(p.waiting, i, i+1)
		t.got <- choice{}
	}
}

// release has all calls look again: a worker left the pool, perhaps the last
// one that they could use.
func (p *pool) release() {
	for _, t := range p.waiting {
		t.got <- choice{}
	}
	p.waiting = nil
}

// hold takes one of the worker's slots.
func (w *member) hold() choice {
	w.mine++
	return choice{member: w, worker: w.id}
}
