package aggregator

import (
	"context"

	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/schema"
)

// A round's hard limit begins when its warning was delivered, and must not depend on room in the
// queue. If the queue has no room, the warning goes out with the verdict of the agent's next event
// that can carry it, and again after a lease without an acknowledgement. The acknowledgement of
// that event starts the grace period. The round's record names the event, so that only one of
// several brokers warns, and any of them accepts the acknowledgement.

// directFrom is added to a round's start for the sequence of such a warning. Shims acknowledge
// injections with a sequence, and drop repeated ones. No item has a sequence this large, and a JSON
// number can hold it.
const directFrom = 1 << 52

// A directWarning is the warning of a round that found no room in the queue. A nil *directWarning
// means that no such warning is due.
type directWarning struct {
	item  *schema.Item
	round *schema.Round
}

// bringsWarning notes that the verdict about an event brings the warning of a round, and reports
// whether it may.
func (a *Aggregator) bringsWarning(ctx context.Context, r *schema.Round, event string) bool {
	may, first, err := a.opt.Memory.Rounds.Warn(ctx, r.Agent, rounds.Warning{Start: r.Start, Event: event, Lease: queue.LeaseFor})
	if err != nil {
		a.opt.Logger.Warn("the delivery of a round's warning could not be stored; the warning comes with a later event", "agent", r.Agent, "event_id", event, "error", err)
	}
	if first {
		a.softOver(r)
	}
	return may
}

// acknowledged starts the grace of the agent's round if its warning went out with one of the events.
func (a *Aggregator) acknowledged(agent string, events []string) {
	if len(events) == 0 || a.opt.Memory.Rounds == nil {
		return
	}
	if r := a.round(agent); r != nil && r.SoftDue() {
		a.background(func(ctx context.Context) error { return a.opt.Memory.Rounds.Acked(ctx, agent, events) })
	}
}

// takes offers a warning to the stages in addition to the claimed items, and reports whether one
// takes it.
func (d *delivery) takes(warning *schema.Item) bool {
	for _, hook := range d.hooks {
		p := d.to.Peers.Clone()
		if d.act.Config.Hooks[hook].Handler == schema.RoundTimeoutPost && len(d.chosen(hook, &p, []*schema.Item{warning})) > 0 {
			d.by[warning.Sequence] = hook
			return true
		}
	}
	return false
}
