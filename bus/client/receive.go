package client

import (
	"context"
	"slices"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// receive completes a verdict, and records what must be acknowledged after its delivery.
func (c *Client) receive(ctx context.Context, a *ask, v *schema.Verdict) {
	v.EventID = a.routing.ID
	c.learn(a.routing.Agent, v.Fabric, v.Acked)
	b := &bundle{injections: v.Injections, restart: v.Restart, workspaces: v.Workspaces}
	if !b.queued() {
		return
	}
	ctx, cancel := context.WithDeadlineCause(ctx, a.end, errLate)
	defer cancel()
	c.complete(ctx, delivery{a.routing.Agent, a.routing.Session, a.routing.ID, a.workspaces}, b)
	brought := v.Injections
	v.Injections, v.Restart, v.Workspaces = b.injections, b.restart, b.workspaces
	if v.Decision == schema.Retry && !b.hasItems() && onlyDelivers(v, brought) {
		v.Decision, v.Reason = schema.Continue, ""
	}
}

// onlyDelivers reports whether a retry only delivers items: all hooks that ran are those
// that delivered them. If the agent has read these items before, and only the
// acknowledgement was lost, the retry has no purpose. If another hook ran, the retry
// stays, because the fold has dropped that hook's rewrites.
func onlyDelivers(v *schema.Verdict, brought []schema.Injection) bool {
	some := false
	for i := range v.ExecutedHooks {
		h := &v.ExecutedHooks[i]
		some = some || h.Decision == schema.Retry
		if !slices.ContainsFunc(brought, func(in schema.Injection) bool { return in.Hook == h.Hook && len(in.Items()) > 0 }) {
			return false
		}
	}
	return some
}

// learn records which fabric answers.
func (c *Client) learn(agent, fabric string, acked []string) {
	if void := c.deliveryLog.learn(agent, fabric, acked); void > 0 {
		c.log.Info("another fabric answers; acknowledgements for the one before are void", "fabric", fabric, "count", void)
	}
}

// A delivery is the event of a delivery to an agent, and the folder for other agents'
// workspaces.
type delivery struct{ agent, session, event, workspaces string }

// complete removes injections that were delivered before, fetches texts and workspaces,
// and records the remaining items.
func (c *Client) complete(ctx context.Context, m delivery, b *bundle) {
	cut := b.dropDelivered(c.deliveryLog.isDelivered(m.agent))
	h := c.deliveryLog.handover(m)
	if cut && !b.hasItems() {
		b.workspaces = nil
		c.deliveryLog.restore(h)
		c.wakeAcker()
		return
	}
	if b.outside() {
		stop := c.holding(ctx, m.agent, m.event)
		defer stop()
	}
	lost := c.texts(ctx, m, b)
	c.unpack(ctx, m, b)
	for i := range b.injections {
		h.Sequences = append(h.Sequences, b.injections[i].Items()...)
	}
	if len(lost) > 0 {
		h.Events = nil // lost texts must be delivered again with the rest
		h.Sequences = slices.DeleteFunc(h.Sequences, func(s uint64) bool { return slices.Contains(lost, s) })
	}
	c.deliveryLog.addReceived(m.event, h)
}

// handover returns an empty handover for a delivery.
func (l *deliveryLog) handover(m delivery) *Handover {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &Handover{Fabric: l.fabric, Agent: m.agent}
	if id, ok := bus.CanonicalUUID(m.event); ok {
		h.Events = []string{id}
	}
	return h
}

// outside reports whether some content of b is in the object store.
func (b *bundle) outside() bool {
	if len(b.workspaces) > 0 {
		return true
	}
	for i := range b.injections {
		if b.injections[i].Object != nil {
			return true
		}
	}
	return false
}
