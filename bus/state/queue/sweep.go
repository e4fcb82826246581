package queue

import (
	"context"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// sweepEvery is about how often items are looked for that have waited for too
	// long, or are done and still there.
	sweepEvery = time.Second
	// expireLater is when an item is looked at again that cannot be ended yet.
	expireLater = 2 * time.Second
)

// sweep ends what nobody else ends, in the background.
func (q *Queue) sweep() {
	for {
		q.sweepMarks()
		q.sweepDoubts()
		for _, a := range q.suspects.take() {
			q.endDone(a)
		}
		for _, e := range q.index.over(q.clock.Now()) {
			if q.life.Err() != nil {
				return
			}
			if err := q.expire(e); err != nil {
				q.index.later(q.clock.Now().Add(expireLater), e)
				if q.life.Err() == nil {
					q.log.Info("cannot remove an expired item; the broker tries again", "key", e.item.Key, "error", err)
				}
			}
		}
		// Nodes that sweep at the same moment would lose each other's writes.
		if kv.Pause(q.life, sweepEvery/2) != nil || kv.Rest(q.life, sweepEvery*3/4) != nil {
			return
		}
	}
}

// expire ends an item that has waited for too long, unless it is on its way.
func (q *Queue) expire(e *entry) error {
	ctx, cancel := context.WithTimeout(q.life, kv.TryFor)
	defer cancel()
	if e.kind != forAgent {
		if q.leasedToAny(e) {
			q.index.later(q.clock.Now().Add(expireLater), e)
			return nil
		}
		_, err := q.endItem(ctx, e, schema.Expired)
		return err
	}
	a, err := q.agents.get(e.item.Scope.Agent)
	if err != nil {
		return err
	}
	state, err := q.close(ctx, a, e, schema.Expired)
	switch {
	case err != nil:
		return err
	case state == schema.Leased:
		q.index.later(q.clock.Now().Add(expireLater), e)
		return nil
	}
	return q.endOne(a, e, state)
}

// close notes in the agent's cursor that its item ended, so that no claim takes
// it along. It returns how the item ended, or that it is leased and stays.
func (q *Queue) close(ctx context.Context, a *agent, e *entry, state schema.ItemState) (now schema.ItemState, err error) {
	err = q.change(ctx, a, false, "", func(k *known, v *view) (*plan, error) {
		if now, _ = k.state(e); now != schema.Queued {
			return nil, nil
		}
		now = state
		cur := k.begin()
		cur.finish(e.seq())
		for i := range cur.Leases { // that have ended: the same event must not get it again
			l := &cur.Leases[i]
			l.Seqs = slices.DeleteFunc(l.Seqs, func(seq uint64) bool { return seq == e.seq() })
		}
		cur.Ends = append(cur.Ends, ending{Seq: e.seq(), State: state})
		cur.tidy(v, a.name)
		return &plan{cursor: &cur}, nil
	})
	return now, err
}

// leasedToAny reports whether an item for many is on its way to some agent.
func (q *Queue) leasedToAny(e *entry) (found bool) {
	q.agents.each(func(a *agent) {
		k := a.cursor.Load()
		if l := k.leased(e.seq()); l != nil && time.Duration(l.Left) > time.Since(k.seen) {
			found = true
		}
	})
	return found
}
