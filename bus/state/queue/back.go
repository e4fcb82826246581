package queue

import (
	"context"
	"errors"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// giveBackFor bounds the attempts to release what a claim took. The lease ends by itself then.
const giveBackFor = LeaseFor

// A giving is a claim whose write may have been stored, and whose items are not delivered.
type giving struct {
	agent *agent
	event string
	by    string
	until time.Time
}

// giveBack makes the items of such a claim due at once, instead of at the end of the lease.
func (c *claim) giveBack(err error) {
	if _, dead := errors.AsType[*died](err); dead || c.stored == nil || !c.stored.sent || len(c.decision.taken) == 0 {
		return
	}
	q, g := c.queue, giving{agent: c.agent, event: c.ID, by: c.by, until: time.Now().Add(giveBackFor)}
	_ = later(q.givings, func() { q.giveOne(g) }) // if too many wait, the lease ends by itself
}

// giveOne ends the lease of a claim. It also writes the cursor if there is no lease, because that makes a write
// of the claim that is still in transit fail.
func (q *Queue) giveOne(g giving) {
	ctx, cancel := context.WithDeadline(q.life, g.until)
	defer cancel()
	err := kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		return true, q.change(ctx, g.agent, true, "", func(k *known, v *view) (*plan, error) {
			cur := k.begin()
			if l := cur.of(g.event); l != nil {
				if l.By != g.by {
					return nil, nil // the event was sent again, and answered
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
