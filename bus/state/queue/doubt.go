package queue

import (
	"context"
	"errors"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// mostDoubts bounds how many items are looked for with one sweep.
const mostDoubts = 500

// An end that nobody remembers any more is never told. Who heard nothing for so
// long asks the leader for each item, before it goes out and in the background.

// doubtAll notes that each item that is known may have ended without a word.
func (x *index) doubtAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for seq := range x.bySeq {
		x.doubts[seq] = true
	}
}

// doubtful reports whether the item may have ended without a word.
func (x *index) doubtful(e *entry) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.doubts[e.seq()]
}

// trust notes that the item was there when the leader was asked.
func (x *index) trust(e *entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.doubts, e.seq())
}

// vanished removes an item of which a leader knows nothing, if that is the last word.
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

// doubted are some of the items that may have ended without a word.
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

// sweepDoubts asks for some of them.
func (q *Queue) sweepDoubts() {
	for _, e := range q.index.doubted() {
		ctx, cancel := context.WithTimeout(q.life, kv.TryFor)
		_, err := q.text(ctx, e)
		cancel()
		if err != nil && !errors.Is(err, errGone) {
			return // again with the next sweep
		}
	}
}
