package client

import (
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// Policy returns what the fabric's fail-closed hooks guard, for times when no broker answers.
// It does not check the signature; use guard.Open. With a nonce, the answer proves that it is
// fresh. Policy asks once, within ctx.
func (c *Client) Policy(ctx context.Context, nonce string) (*schema.PolicyAnswer, error) {
	answer := &schema.PolicyAnswer{}
	if err := c.control(ctx, controlTarget{verb: schema.VerbPolicy}, &schema.PolicyRequest{Nonce: nonce}, answer); err != nil {
		return nil, fmt.Errorf("asking for the policy: %w", err)
	}
	return answer, nil
}

// Record reports calls of an agent that no broker judged, at most [schema.MaxUnjudged]. Without
// an error, the fabric has stored them permanently. After an error the caller may report them
// again, and they still count once.
func (c *Client) Record(ctx context.Context, agent string, calls []schema.Unjudged) (*schema.RecordAnswer, error) {
	answer := &schema.RecordAnswer{}
	if err := c.control(ctx, controlTarget{verb: schema.VerbRecord, agent: agent}, &schema.RecordRequest{Calls: calls}, answer); err != nil {
		return nil, fmt.Errorf("reporting unjudged calls of %s: %w", agent, err)
	}
	return answer, nil
}
