package dispatch

import (
	"cmp"
	"slices"
	"time"
)

// queueEntry is a call's place in the queue of a pool. A free slot goes to the first call
// that can use it, so that no later call takes it.
type queueEntry struct {
	version  uint64
	excluded []string // workers that it cannot use
	local    bool     // the worker in this process can run it, too
	shadow   bool     // a shadow call: it leaves half of a worker's slots to others
	freed    uint64   // value of Members.freed when the local worker was full
	// until is when its time ends; zero: unknown.
	until time.Time
	// ticket is its place; 0: it has not waited yet. A call that waits again keeps its
	// ticket.
	ticket uint64
	// got receives a slot, or the zero choice if the call must look again. Its capacity
	// is one.
	got chan choice
}

// take returns the least loaded worker for t, the local worker if a slot became free, or
// the pool's first contact. wait reports that t was queued because all workers are full
// or silent. The error is ErrNoWorker if t excludes all remaining workers, or
// errQueueFull or errQueueLong.
func (m *Members) take(poolName string, t *queueEntry) (to choice, wait bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pool(poolName)
	to, alive, ok := m.find(p, t)
	switch {
	case ok:
		return to, false, nil
	case alive || p.hasSleepers(t.excluded):
		return choice{}, true, m.enqueue(p, t, alive) // a slot may become free, or a silent worker return
	case len(t.excluded) > 0:
		return choice{}, false, ErrNoWorker
	}
	return choice{}, false, nil
}

// await is take for a call that the pool's first contact refused: it waits until a worker
// is known.
func (m *Members) await(poolName string, t *queueEntry) (to choice, wait bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pool(poolName)
	to, alive, ok := m.find(p, t)
	if ok {
		return to, false, nil
	}
	return choice{}, true, m.enqueue(p, t, alive)
}

// find takes a slot for t if one is free. alive reports whether any worker is alive, that in
// this process too if it can run t. The caller holds the lock.
func (m *Members) find(p *pool, t *queueEntry) (to choice, alive, ok bool) {
	best, alive := p.best(t)
	if best != nil {
		return best.takeSlot(), alive, true
	}
	// If a slot of the local worker became free before this call was queued, it woke no call.
	return choice{local: true}, alive || t.local, t.local && m.freed.Load() != t.freed
}

// enqueue puts t into the queue in the order of tickets. A call that has a ticket is
// never turned away. alive is that of find: calls that wait for a silent worker to return are
// no overload. The caller holds the lock.
func (m *Members) enqueue(p *pool, t *queueEntry, alive bool) error {
	if t.ticket == 0 {
		if len(p.waiting) >= m.queue {
			return errQueueFull
		}
		if alive && !p.inTime(t) {
			return errQueueLong
		}
		m.tickets++
		t.ticket, t.got = m.tickets, make(chan choice, 1)
	}
	at, _ := slices.BinarySearchFunc(p.waiting, t.ticket, func(w *queueEntry, ticket uint64) int { return cmp.Compare(w.ticket, ticket) })
	p.waiting = slices.Insert(p.waiting, at, t)
	return nil
}

// inTime reports whether a call that is to wait now will run before its deadline.
func (p *pool) inTime(t *queueEntry) bool {
	now := time.Now()
	p.overload.Look(now, p.done, len(p.waiting))
	return t.until.IsZero() || p.overload.InTime(0, t.until.Sub(now), len(p.waiting))
}

// leave removes a call that no longer waits from the queue, and passes on a slot that it
// received in between.
func (m *Members) leave(poolName string, t *queueEntry) {
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

// Freed records that a slot of the local worker became free.
func (m *Members) Freed(poolName string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.freed.Add(1)
	if p := m.pools[poolName]; p != nil {
		p.countFreed()
		p.wakeLocal()
	}
}

// serve gives free slots to the waiting calls, in order.
func (p *pool) serve() {
	for i := 0; i < len(p.waiting) && slices.ContainsFunc(p.members, (*member).hasCapacity); {
		t := p.waiting[i]
		if best, _ := p.best(t); best != nil {
			p.waiting = slices.Delete(p.waiting, i, i+1)
			t.got <- best.takeSlot()
			continue
		}
		i++
	}
}

// wakeLocal makes the first call that can use the local worker look again.
func (p *pool) wakeLocal() {
	if i := slices.IndexFunc(p.waiting, func(t *queueEntry) bool { return t.local }); i >= 0 {
		t := p.waiting[i]
		p.waiting = slices.Delete(p.waiting, i, i+1)
		t.got <- choice{}
	}
}

// release makes all waiting calls look again, because the last worker that they can use
// may have left.
func (p *pool) release() {
	for _, t := range p.waiting {
		t.got <- choice{}
	}
	p.waiting = nil
}

// takeSlot takes one of the worker's slots.
func (w *member) takeSlot() choice {
	w.mine++
	return choice{member: w, worker: w.id}
}

const (
	// burst is the longest time that a queue may stay non-empty and not count as an
	// overload. In an overload, calls wait for at most soon, so that the queue is short
	// soon after it ends.
	burst = 5 * time.Second
	soon  = 500 * time.Millisecond
	// few is how many calls may wait even in an overload: they keep slow workers busy.
	few = 8
	// calm is a time without waiting calls after which a new burst begins.
	calm = time.Second
	// paceOver and paceLeast are the minimum time and number of finished calls over which
	// the pace is measured.
	paceOver  = 500 * time.Millisecond
	paceLeast = 4
)

// A Rush tells a burst from an overload. From the pace at which work is done and the
// queue's length it decides which call may wait. In a burst, a call may wait if it will
// be done in half of its time; in an overload, only if it will be done soon. The zero
// Rush is ready to use. It has no lock.
type Rush struct {
	before, after, last done
	waited              time.Time // when a call last waited
	since               time.Time // since when calls wait without a pause
}

// done is how much work was done at a time.
type done struct {
	at time.Time
	n  int64
}

// Look records how much work was done by now, and how many calls wait.
func (r *Rush) Look(now time.Time, n int64, waiting int) {
	if waiting == 0 || now.Sub(r.last.at) > calm {
		r.before, r.after = done{now, n}, done{now, n} // workers were idle, so this time does not show their pace
	}
	r.last = done{now, n}
	if now.Sub(r.after.at) >= paceOver && n-r.after.n >= paceLeast {
		r.before, r.after = r.after, r.last
	}
	if now.Sub(r.waited) > calm {
		r.since = now
	}
	if waiting > 0 {
		r.waited = now
	}
}

// InTime reports whether a call that has waited for waited will be done soon enough. left
// is its time when it arrived, ahead the number of calls before it.
func (r *Rush) InTime(waited, left time.Duration, ahead int) bool {
	wait, known := r.over(ahead + 1)
	if overload := r.last.at.Sub(r.since) > burst && ahead >= few; overload {
		if !known {
			return false // nothing moves
		}
		left = min(left, 2*soon)
	}
	return waited+wait <= left/2
}

// over returns how long that many calls take; known is false if the pace is unknown.
func (r *Rush) over(calls int) (d time.Duration, known bool) {
	n := r.last.n - r.before.n
	if n < paceLeast {
		return 0, false
	}
	return time.Duration(float64(r.last.at.Sub(r.before.at)) / float64(n) * float64(calls)), true
}
