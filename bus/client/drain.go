package client

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/schema"
)

// Drain takes along all that waits for an agent, or as much as fits, as one
// message of the user, complete as the verdict of [Client.Ask] is. When the agent
// has it, say so by [Client.Ack] or [Client.Handed] with the answer's EventID, and
// drain again while some Remaining. Empty Content: nothing waited.
func (c *Client) Drain(ctx context.Context, agent, session string) (*schema.DrainAnswer, error) {
	if agent == "" {
		return nil, fmt.Errorf("%w: the agent's name is empty", ErrInvalid)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("making an event id: %w", err)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	d := &schema.DrainAnswer{}
	request := &schema.DrainRequest{EventID: id.String(), Session: session}
	if err := c.patiently(ctx, schema.VerbDrain, agent, request, d); err != nil {
		return nil, fmt.Errorf("draining what waits for %s: %w", agent, err)
	}
	d.EventID = id.String()
	c.learn(agent, d.Fabric, nil)
	c.drained(ctx, agent, d)
	return d, nil
}

// drained makes the answer complete. Its content is that of its injections; it
// is made anew where they changed.
func (c *Client) drained(ctx context.Context, agent string, d *schema.DrainAnswer) {
	b := &bundle{injections: d.Injections, workspaces: d.Workspaces}
	if !b.queued() {
		return
	}
	count, outside := len(b.injections), b.outside()
	c.complete(ctx, agent, d.EventID, b)
	d.Injections, d.Workspaces = b.injections, b.workspaces
	if !outside && len(b.injections) == count {
		return
	}
	var texts []string
	for i := range b.injections {
		if s := b.injections[i].Content; s != "" {
			texts = append(texts, s)
		}
	}
	d.Content = strings.Join(texts, "\n")
}

// within is ctx, or the client's own time, with what is needed at the end to
// say what came of it.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	until := time.Now().Add(c.timeout)
	if deadline, ok := ctx.Deadline(); ok {
		until = deadline
	}
	return context.WithDeadlineCause(ctx, until.Add(-schema.Margin(time.Until(until))/2), errLate)
}
