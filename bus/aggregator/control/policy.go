package control

import (
	"context"
	"fmt"
	"sync"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// policies holds what shims follow while no broker answers them. The first request for a version
// makes it.
type policies struct {
	mu     sync.Mutex // guards the following fields, and is held while an answer is made
	of     *stages.Config
	frozen *freezes.State
	signer *guard.Signer
	made   schema.PolicyAnswer
}

// policy returns the signed policy: the calls that fail-closed hooks guard.
func (c *Control) policy(ctx context.Context, _ string, req *schema.PolicyRequest) (*schema.PolicyAnswer, error) {
	if len(req.Nonce) > schema.MaxNonce {
		return nil, badRequest("nonce has %d bytes; use at most %d", len(req.Nonce), schema.MaxNonce)
	}
	if c.opt.Lease != nil {
		// The configuration may have changed since this broker lost its connection.
		if err := c.opt.Lease.Wait(ctx); err != nil {
			return nil, unavailable("this broker is cut off from the fabric; try again")
		}
	}
	act := c.opt.Active()
	if act == nil {
		return nil, noActive()
	}
	answer, signer, err := c.policies.get(ctx, &c.opt, act, c.opt.Frozen())
	if err == nil && req.Nonce != "" {
		signer.Freshen(&answer, req.Nonce)
	}
	return &answer, err
}

// get returns the policy of a version with the freezes, and its signer.
func (p *policies) get(ctx context.Context, opt *Options, act *stages.Config, f *freezes.State) (schema.PolicyAnswer, *guard.Signer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == act && p.frozen == f {
		return p.made, p.signer, nil
	}
	if opt.Configs == nil {
		return schema.PolicyAnswer{}, nil, unavailable("this broker has no key to sign a policy with")
	}
	seed, err := opt.Configs.Seed(ctx)
	if err != nil {
		return schema.PolicyAnswer{}, nil, unavailable("%v", err)
	}
	signer, err := guard.NewSigner(seed)
	if err != nil {
		return schema.PolicyAnswer{}, nil, err
	}
	cfg := act.Config
	if cfg.Fabric == "" {
		cfg.Fabric = opt.Fabric
	}
	var z guard.Frozen
	if f != nil {
		z = guard.Frozen{Version: f.Version, Freezes: f.Freezes, Terminal: act.TerminalTools}
	}
	policy, document, err := guard.DocumentFrozen(&cfg, z)
	if err != nil {
		return schema.PolicyAnswer{}, nil, fmt.Errorf("config version %d: %w", cfg.Version, err)
	}
	if policy.Coarse {
		opt.Logger.Warn("the policy of the fail-closed hooks is too large for shims to store; while no broker answers, shims deny more calls than those hooks guard", "version", cfg.Version)
	}
	p.of, p.frozen, p.signer, p.made = act, f, signer, signer.Sign(document)
	return p.made, p.signer, nil
}
