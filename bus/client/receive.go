package client

import (
	"context"

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
	c.complete(ctx, a.routing.Agent, a.routing.ID, b)
	v.Injections, v.Restart, v.Workspaces = b.injections, b.restart, b.workspaces
}

// learn takes in which fabric answers.
func (c *Client) learn(agent, fabric string, acked []string) {
	if void := c.ledger.learn(agent, fabric, acked); void > 0 {
		c.log.Info("another fabric answers; acknowledgements for the one before are void", "fabric", fabric, "count", void)
	}
}

// complete cuts what was handed over before, fetches what is missing, and notes
// what is left to be handed over.
func (c *Client) complete(ctx context.Context, agent, event string, b *bundle) {
	cut := b.cut(c.ledger.before(agent))
	h := &Handover{Agent: agent}
	if id, ok := acknowledgeable(event); ok {
		h.Events = []string{id}
	}
	c.ledger.mu.Lock()
	h.Fabric = c.ledger.fabric
	c.ledger.mu.Unlock()
	if cut && !b.left() {
		b.workspaces = nil
		c.ledger.mu.Lock()
		c.ledger.recall(*h)
		c.ledger.mu.Unlock()
		c.wakeAcker()
		return
	}
	if b.outside() {
		stop := c.holding(ctx, agent, event)
		defer stop()
	}
	lost := c.texts(ctx, agent, b)
	c.unpack(ctx, agent, b)
	for i := range b.injections {
		if !lost[i] {
			h.Sequences = append(h.Sequences, sequences(&b.injections[i])...)
		}
	}
	if len(lost) > 0 {
		h.Events = nil // it must come again
	}
	c.ledger.give(event, h)
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
