package judge

import (
	"context"

	"github.com/hookfabric/hookfabric/bus/client"
)

// Needs asks which events of an agent are to have the conversation with them.
func (j *Judge) Needs(ctx context.Context, agent string) (client.Needs, error) {
	g, err := j.handing(ctx, agent)
	if err != nil {
		return client.Needs{}, err
	}
	return g.Client.Needs(ctx, agent)
}
