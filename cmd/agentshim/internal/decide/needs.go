package decide

import (
	"context"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// Needs returns which events of an agent must carry the conversation.
func (j *Judge) Needs(ctx context.Context, agent string) (client.Needs, error) {
	g, err := j.delivery(ctx, agent)
	if err != nil {
		return client.Needs{}, err
	}
	return g.Client.Needs(ctx, agent)
}

// Mode returns how other agents' answers reach an agent. It first sets the mode to voteOnly; nil: it
// does not.
func (j *Judge) Mode(ctx context.Context, agent string, voteOnly *bool) (schema.ModeAnswer, error) {
	g, err := j.delivery(ctx, agent)
	if err != nil {
		return schema.ModeAnswer{}, err
	}
	if voteOnly != nil {
		return schema.ModeAnswer{VoteOnly: *voteOnly}, g.Client.SetMode(ctx, agent, *voteOnly)
	}
	return g.Client.Mode(ctx, agent)
}

// Checkpoint reports that an agent starts again.
func (j *Judge) Checkpoint(ctx context.Context, agent string) error {
	g, err := j.delivery(ctx, agent)
	if err != nil {
		return err
	}
	return g.Client.Checkpoint(ctx, agent)
}
