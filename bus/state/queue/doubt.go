package queue

import (
	"context"
	"errors"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// mostDoubts bounds the items that one sweep checks.
const mostDoubts = 500

// After a long time without news an item may have ended, and its end may have been forgotten. Such an item is checked
// at the leader before its delivery, and in the background.

// doubtAll marks all known items as doubtful.
func (x *index) doubtAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for seq := range x.bySeq {
		x.doubts[seq] = true
	}
}

// doubtful reports whether the item may have ended unnoticed.
func (x *index) doubtful(e *entry) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.doubts[e.seq()]
}

// trust records that the leader has the item.
func (x *index) trust(e *entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.doubts, e.seq())
}

// vanished removes an item that the leader does not have, if that is proved.
func (q *Queue) vanished(ctx context.Context, e *entry) error {
	if err := q.items.Gone(ctx, e.item.Key, e.seq()); err != nil {
		return unavailable(err)
	}
	x := q.index
	x.mu.Lock()
	defer x.mu.Unlock()
	if old := x.bySeq[e.seq()]; old != nil {
		x.remove(old)
	}
	return nil
}

// doubted returns some of the doubtful items.
func (x *index) doubted() (some []*entry) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for seq := range x.doubts {
		if some = append(some, x.bySeq[seq]); len(some) == mostDoubts {
			break
		}
	}
	return some
}

// sweepDoubts checks some of them.
func (q *Queue) sweepDoubts() {
	for _, e := range q.index.doubted() {
		ctx, cancel := context.WithTimeout(q.life, kv.TryFor)
		_, err := q.text(ctx, e)
		cancel()
		if err != nil && !errors.Is(err, errGone) {
			return // the next sweep tries again
		}
	}
}
