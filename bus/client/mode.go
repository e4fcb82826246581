package client

import (
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// Mode returns how other agents' answers reach an agent.
func (c *Client) Mode(ctx context.Context, agent string) (schema.ModeAnswer, error) {
	return c.mode(ctx, agent, &schema.ModeRequest{})
}

// SetMode sets how other agents' answers reach an agent in all of its sessions. With voteOnly
// they arrive by a restart, because the agent's voting tools were fixed when its turn began.
func (c *Client) SetMode(ctx context.Context, agent string, voteOnly bool) error {
	_, err := c.mode(ctx, agent, &schema.ModeRequest{VoteOnly: &voteOnly})
	return err
}

func (c *Client) mode(ctx context.Context, agent string, request *schema.ModeRequest) (is schema.ModeAnswer, err error) {
	if err := c.controlAgent(ctx, schema.VerbMode, agent, request, &is); err != nil {
		return is, fmt.Errorf("the mode of agent %q: %w", agent, err)
	}
	return is, nil
}

// Checkpoint reports that an agent starts again. Answers of other agents that the fabric
// deferred until then reach it with its next event.
func (c *Client) Checkpoint(ctx context.Context, agent string) error {
	if err := c.controlAgent(ctx, schema.VerbCheckpoint, agent, struct{}{}, nil); err != nil {
		return fmt.Errorf("reporting that agent %q starts again: %w", agent, err)
	}
	return nil
}

// controlAgent makes a request about an agent that may be served twice.
func (c *Client) controlAgent(ctx context.Context, verb, agent string, request, answer any) error {
	if agent == "" {
		return fmt.Errorf("%w: the agent's name is empty", ErrInvalid)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	return c.controlRetrying(ctx, controlTarget{verb, agent, controlAnother}, request, answer)
}
