package client

import (
	"context"
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// receive makes a verdict complete, and notes what is to be acknowledged once
// it was handed over. A verdict that brings nothing costs nothing.
func (c *Client) receive(ctx context.Context, a *ask, v *schema.Verdict) {
	v.EventID = a.routing.ID
	c.learn(a.routing.Agent, v.Fabric, v.Acked)
	b := &bundle{injections: v.Injections, restart: v.Restart, workspaces: v.Workspaces}
	if !b.queued() {
		return
	}
	ctx, cancel := context.WithDeadlineCause(ctx, a.end, errLate)
	defer cancel()
	c.complete(ctx, moment{a.routing.Agent, a.routing.Session, a.routing.ID, a.workspaces}, b)
	brought := v.Injections
	v.Injections, v.Restart, v.Workspaces = b.injections, b.restart, b.workspaces
	if v.Decision == schema.Retry && !b.left() && broughtOnly(v, brought) {
		v.Decision, v.Reason = schema.Continue, ""
	}
}

// broughtOnly reports whether a retry is nothing but the handing over of items: all
// hooks that ran are those that brought them. Once the agent has read the items
// before, and only the acknowledgement was lost, there is nothing to go on with. Where
// another hook ran, the retry stays: the fold has dropped what that one rewrote.
func broughtOnly(v *schema.Verdict, brought []schema.Injection) bool {
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

// learn takes in which fabric answers.
func (c *Client) learn(agent, fabric string, acked []string) {
	if void := c.ledger.learn(agent, fabric, acked); void > 0 {
		c.log.Info("another fabric answers; acknowledgements for the one before are void", "fabric", fabric, "count", void)
	}
}

// A moment is when an agent is handed something, and below which folder
// workspaces of other agents are unpacked for it.
type moment struct{ agent, session, event, workspaces string }

// complete cuts what was handed over before, fetches what is missing, and notes
// what is left to be handed over.
func (c *Client) complete(ctx context.Context, m moment, b *bundle) {
	cut := b.cut(c.ledger.before(m.agent))
	h := c.ledger.handover(m)
	if cut && !b.left() {
		b.workspaces = nil
		c.ledger.keep(h)
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
		h.Events = nil // it must come again, and what was lost with it
		h.Sequences = slices.DeleteFunc(h.Sequences, func(s uint64) bool { return slices.Contains(lost, s) })
	}
	c.ledger.give(m.event, h)
}

// handover is what there is to say of a moment before anything is known of it.
func (l *ledger) handover(m moment) *Handover {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &Handover{Fabric: l.fabric, Agent: m.agent}
	if id, ok := acknowledgeable(m.event); ok {
		h.Events = []string{id}
	}
	return h
}

// outside reports whether something of b lies in the object store.
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
