package client

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// Drain leases all items that wait for an agent, or as many as fit. It returns them as one
// message of the user, complete as in [Client.Ask]. When the agent has read the message, call
// [Client.Ack] or [Client.Handed] with the answer's EventID. If Remaining is not 0, drain
// again. Content is empty if no new item waited.
func (c *Client) Drain(ctx context.Context, agent, session string) (*schema.DrainAnswer, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("making an event id: %w", err)
	}
	return c.drain(ctx, agent, &schema.DrainRequest{EventID: id.String(), Session: session})
}

// DrainOne leases the next item that waits for an agent, under an event id that the caller
// chooses. The same id returns the same item until it is acknowledged, also to another process.
// [Client.Hold] keeps the lease.
func (c *Client) DrainOne(ctx context.Context, agent, session, event string) (*schema.DrainAnswer, error) {
	if _, ok := bus.CanonicalUUID(event); !ok {
		return nil, fmt.Errorf("%w: %.64q is not an event id; write a UUID", ErrInvalid, event)
	}
	return c.drain(ctx, agent, &schema.DrainRequest{EventID: event, Session: session, One: true})
}

func (c *Client) drain(ctx context.Context, agent string, request *schema.DrainRequest) (*schema.DrainAnswer, error) {
	if agent == "" {
		return nil, fmt.Errorf("%w: the agent's name is empty", ErrInvalid)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	d := &schema.DrainAnswer{}
	if err := c.controlRetrying(ctx, controlTarget{schema.VerbDrain, agent, controlAnother}, request, d); err != nil {
		return nil, fmt.Errorf("draining what waits for %s: %w", agent, err)
	}
	d.EventID = request.EventID
	c.learn(agent, d.Fabric, nil)
	c.drained(ctx, delivery{agent, request.Session, d.EventID, c.workspaces}, d)
	return d, nil
}

// between separates the parts of a drained message.
const between = "\n\n"

// drained completes the answer. Its content is the text of the restart, if there is one,
// and of the injections that are left.
func (c *Client) drained(ctx context.Context, m delivery, d *schema.DrainAnswer) {
	b := &bundle{injections: d.Injections, workspaces: d.Workspaces}
	parts := contents(nil, d.Injections)
	if first, ok := strings.CutSuffix(d.Content, strings.Join(parts, between)); ok && first != "" {
		b.restart = &schema.Restart{Content: strings.TrimSuffix(first, between)}
	}
	if !b.queued() {
		return
	}
	c.complete(ctx, m, b)
	d.Injections, d.Workspaces = b.injections, b.workspaces
	d.Content = strings.Join(contents(b.restart, b.injections), between)
}

// contents returns the texts that are not empty.
func contents(restart *schema.Restart, injections []schema.Injection) (texts []string) {
	if restart != nil && restart.Content != "" {
		texts = append(texts, restart.Content)
	}
	for i := range injections {
		if s := injections[i].Content; s != "" {
			texts = append(texts, s)
		}
	}
	return texts
}

// within returns ctx with the client's timeout, minus the time needed to return a result.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	until := time.Now().Add(c.timeout)
	if deadline, ok := ctx.Deadline(); ok {
		until = deadline
	}
	return context.WithDeadlineCause(ctx, until.Add(-schema.Margin(time.Until(until))/2), errLate)
}
