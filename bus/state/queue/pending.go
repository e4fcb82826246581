package queue

import (
	"context"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// Current returns when the mirrors have applied everything that was stored before the call. Usually that is a moment later,
// and seconds later during a change of the leader.
func (q *Queue) Current(ctx context.Context) error {
	for _, f := range []follower{q.items, q.cursors} {
		info, err := f.Info(ctx)
		if err != nil {
			return unavailable(err)
		}
		if err := f.mirror.Reach(ctx, info.Last); err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// Pending lists the waiting items for one agent, including those of its session and for all agents, or all items.
func (q *Queue) Pending(agent string, limit int) schema.PendingAnswer {
	var answer schema.PendingAnswer
	now := q.clock.Now()
	for _, e := range q.waitingFor(agent) {
		item, waits := q.pendingItem(e, agent, now)
		if !waits {
			continue
		}
		if answer.Total++; limit > 0 && len(answer.Items) >= limit {
			continue
		}
		if agent == "" && e.kind != forAgent {
			item.Delivered = q.deliveries(e)
		}
		answer.Items = append(answer.Items, item)
	}
	return answer
}

// waitingFor returns the items that may wait for the agent, or all items, in order.
func (q *Queue) waitingFor(agent string) []*entry {
	if agent == "" {
		return q.index.snapshot()
	}
	a, err := q.agents.get(agent)
	if err != nil {
		return nil
	}
	who := scopes{own: a.scope}
	if s := a.session.Load(); s != nil {
		who.session = s.scope
	}
	return q.index.view(who, new(cursor)).merged()
}

// pendingItem describes an item; waits: an agent, or the named one, has not received it yet.
func (q *Queue) pendingItem(e *entry, agent string, now time.Time) (p schema.PendingItem, waits bool) {
	it := &e.item
	p = schema.PendingItem{
		Key: it.Key, Sequence: e.seq(), Scope: it.Scope, Source: it.Source, Strategy: it.Strategy,
		State: schema.Queued, Length: int64(e.size), Matcher: it.Matcher, Age: schema.Duration(max(0, now.Sub(it.Accepted))),
	}
	if it.Object != nil {
		p.Length += it.Object.Size
	}
	if it.Expiry > 0 {
		p.ExpiresIn = max(1, it.Expiry-p.Age)
	}
	if e.kind == forAgent {
		p.State, p.Event = q.stateFor(e)
		return p, p.State == schema.Queued || p.State == schema.Leased
	}
	if agent == "" {
		return p, true
	}
	a := q.agents.find(agent)
	k := a.cursor.Load()
	if p.State, p.Event = k.state(e); p.State == schema.Delivered {
		return p, false
	}
	c := k.cursor
	c.Since = a.since(&c)
	return p, c.meant(e, agent)
}

// Names reports whether a waiting item for the agent names the object.
func (q *Queue) Names(agent, session, digest string) bool {
	a, err := q.agents.get(agent)
	if err != nil {
		return false
	}
	who := scopes{own: a.scope, session: a.scopeOf(session)}
	return slices.ContainsFunc(q.index.view(who, new(cursor)).merged(), func(e *entry) bool {
		it := &e.item
		return it.Object != nil && it.Object.Digest == digest ||
			it.Answer != nil && it.Answer.Snapshot != nil && it.Answer.Snapshot.Digest == digest
	})
}

// Stats returns figures for metrics.
func (q *Queue) Stats() Stats {
	s := Stats{Pending: q.index.bySource(), Lag: q.lag(), Remembered: q.rememberFor()}
	if at := q.index.oldest(); !at.IsZero() {
		s.Oldest = q.clock.Age(at)
	}
	return s
}
