package client

import (
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// Policy asks for what the fabric's fail-closed hooks guard, for the time in which
// nobody answers. The answer is as it came: guard.Open checks it. With a nonce it
// says that it is fresh. It is asked once, within ctx.
func (c *Client) Policy(ctx context.Context, nonce string) (*schema.PolicyAnswer, error) {
	answer := &schema.PolicyAnswer{}
	if err := c.control(ctx, about{verb: schema.VerbPolicy}, &schema.PolicyRequest{Nonce: nonce}, answer); err != nil {
		return nil, fmt.Errorf("asking for the policy: %w", err)
	}
	return answer, nil
}

// Record hands in calls of an agent that nobody judged, at most
// [schema.MaxUnjudged]. When it returns no error the fabric knows them for ever;
// after one they may be handed in again, and still count once.
func (c *Client) Record(ctx context.Context, agent string, calls []schema.Unjudged) (*schema.RecordAnswer, error) {
	answer := &schema.RecordAnswer{}
	if err := c.control(ctx, about{verb: schema.VerbRecord, agent: agent}, &schema.RecordRequest{Calls: calls}, answer); err != nil {
		return nil, fmt.Errorf("handing in what nobody judged of %s: %w", agent, err)
	}
	return answer, nil
}
