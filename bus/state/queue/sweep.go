package queue

import (
	"context"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// sweepEvery is about the interval of checks for expired and finished items.
	sweepEvery = time.Second
	// expireLater is when an item is checked again that cannot be removed yet.
	expireLater = 2 * time.Second
)

// sweep removes in the background what is not removed elsewhere.
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
				q.index.postpone(q.clock.Now().Add(expireLater), e)
				if q.life.Err() == nil {
					q.log.Info("cannot remove an expired item; the broker tries again", "key", e.item.Key, "error", err)
				}
			}
		}
		// Sweeps of several nodes at the same moment would lose each other's writes.
		if kv.Pause(q.life, sweepEvery/2) != nil || kv.Rest(q.life, sweepEvery*3/4) != nil {
			return
		}
	}
}

// expire ends an expired item, unless it is leased.
func (q *Queue) expire(e *entry) error {
	ctx, cancel := context.WithTimeout(q.life, kv.TryFor)
	defer cancel()
	if e.kind != forAgent {
		if q.leasedToAny(e) {
			q.index.postpone(q.clock.Now().Add(expireLater), e)
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
		q.index.postpone(q.clock.Now().Add(expireLater), e)
		return nil
	}
	return q.endOne(a, e, state)
}

// close records in the agent's cursor that its item ended, so that no claim takes it. It returns how the item ended, or that it
// is leased and stays.
func (q *Queue) close(ctx context.Context, a *agent, e *entry, state schema.ItemState) (now schema.ItemState, err error) {
	err = q.change(ctx, a, false, "", func(k *known, v *view) (*plan, error) {
		if now, _ = k.state(e); now != schema.Queued {
			return nil, nil
		}
		now = state
		cur := k.begin()
		cur.finish(e.seq())
		for i := range cur.Leases { // ended ones: the same event must not get the item again
			l := &cur.Leases[i]
			l.Seqs = slices.DeleteFunc(l.Seqs, func(seq uint64) bool { return seq == e.seq() })
		}
		cur.Ends = append(cur.Ends, ending{Seq: e.seq(), State: state})
		cur.tidy(v, a.name)
		return &plan{cursor: &cur}, nil
	})
	return now, err
}

// leasedToAny reports whether an item for several agents is leased to an agent.
func (q *Queue) leasedToAny(e *entry) (found bool) {
	q.agents.each(func(a *agent) {
		k := a.cursor.Load()
		if l := k.leased(e.seq()); l != nil && time.Duration(l.Left) > time.Since(k.seen) {
			found = true
		}
	})
	return found
}
