package decide

import (
	"context"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// Needs asks which events of an agent are to have the conversation with them.
func (j *Judge) Needs(ctx context.Context, agent string) (client.Needs, error) {
	g, err := j.delivery(ctx, agent)
	if err != nil {
		return client.Needs{}, err
	}
	return g.Client.Needs(ctx, agent)
}

// Mode returns how other agents' answers reach an agent, and changes that before if
// voteOnly says so; nil: it does not.
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

// Checkpoint says that an agent starts again.
func (j *Judge) Checkpoint(ctx context.Context, agent string) error {
	g, err := j.delivery(ctx, agent)
	if err != nil {
		return err
	}
	return g.Client.Checkpoint(ctx, agent)
}
