package queue

import (
	"context"
	"errors"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// giveBackFor bounds how long it is tried to give back what a claim took: by
// then the lease has ended by itself.
const giveBackFor = LeaseFor

// A giving is a claim of which nobody knows whether it was stored, and whose
// items nobody hands over.
type giving struct {
	agent *agent
	event string
	by    string
	until time.Time
}

// giveBack sees to it that what the claim took is due again at once, instead of
// when its lease ends: it was about to be stored when there was no more time.
func (c *claim) giveBack(err error) {
	if _, dead := errors.AsType[*died](err); dead || c.stored == nil || !c.stored.sent || len(c.decision.taken) == 0 {
		return
	}
	g := giving{agent: c.agent, event: c.ID, by: c.by, until: time.Now().Add(giveBackFor)}
	select {
	case c.queue.givings <- g:
	default: // there are many; the lease ends by itself
	}
}

// giveBacks gives back in the background what claims took for nothing.
func (q *Queue) giveBacks() {
	for {
		select {
		case g := <-q.givings:
			q.giveOne(g)
		case <-q.life.Done():
			return
		}
	}
}

// giveOne ends the lease of one claim. Where it is not there the cursor is
// written all the same: the claim's own write may still be on its way, and is
// refused then.
func (q *Queue) giveOne(g giving) {
	ctx, cancel := context.WithDeadline(q.life, g.until)
	defer cancel()
	err := kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, kv.TryFor)
		defer cancel()
		return true, q.change(ctx, g.agent, true, "", func(k *known, v *view) (*plan, error) {
			cur := k.begin()
			if l := cur.of(g.event); l != nil {
				if l.By != g.by {
					return nil, nil // it was asked about again, and answered
				}
				if l.Peers != nil {
					before := cur.Peers.without(l)
					cur.Peers.note(l.Session, &before)
				}
				cur.drop(g.event)
			}
			cur.tidy(v, g.agent.name)
			return &plan{cursor: &cur}, nil
		})
	})
	if err != nil && q.life.Err() == nil {
		q.log.Info("cannot release the lease of an event's items; they are due again when it ends",
			"agent", g.agent.name, "event_id", g.event, "error", err)
	}
}
