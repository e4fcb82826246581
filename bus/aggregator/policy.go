package aggregator

import (
	"context"
	"fmt"
	"sync"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// policies holds what shims follow while no broker answers them. The first request for a version
// makes it.
type policies struct {
	mu     sync.Mutex // guards the following fields, and is held while an answer is made
	of     *active
	frozen *frozen
	signer *guard.Signer
	made   schema.PolicyAnswer
}

// policy returns the signed policy: the calls that fail-closed hooks guard.
func (a *Aggregator) policy(ctx context.Context, agent string, req *schema.PolicyRequest) (*schema.PolicyAnswer, error) {
	switch {
	case agent != "":
		return nil, badRequest("the policy is not of one agent; send the request to hook.v1.ctl.%s._", schema.VerbPolicy)
	case len(req.Nonce) > schema.MaxNonce:
		return nil, badRequest("nonce has %d bytes; use at most %d", len(req.Nonce), schema.MaxNonce)
	}
	if a.opt.Lease != nil {
		// The configuration may have changed since this broker lost its connection.
		if err := a.opt.Lease.Wait(ctx); err != nil {
			return nil, unavailable("this broker is cut off from the fabric; try again")
		}
	}
	act := a.config.active.Load()
	if act == nil {
		return nil, unavailable("no configuration is active; publish one with 'broker apply FILE'")
	}
	answer, signer, err := a.control.policies.get(ctx, a, act, a.freezes.current.Load())
	if err == nil && req.Nonce != "" {
		signer.Freshen(&answer, req.Nonce)
	}
	return &answer, err
}

// get returns the policy of a version with the freezes, and its signer.
func (p *policies) get(ctx context.Context, a *Aggregator, act *active, f *frozen) (schema.PolicyAnswer, *guard.Signer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == act && p.frozen == f {
		return p.made, p.signer, nil
	}
	if a.opt.Configs == nil {
		return schema.PolicyAnswer{}, nil, unavailable("this broker has no key to sign a policy with")
	}
	seed, err := a.opt.Configs.Seed(ctx)
	if err != nil {
		return schema.PolicyAnswer{}, nil, unavailable(err.Error())
	}
	signer, err := guard.NewSigner(seed)
	if err != nil {
		return schema.PolicyAnswer{}, nil, err
	}
	cfg := act.Config
	if cfg.Fabric == "" {
		cfg.Fabric = a.opt.Fabric
	}
	var z guard.Frozen
	if f != nil {
		z = guard.Frozen{Version: f.Version, Freezes: f.Freezes, Terminal: act.terminalTools}
	}
	policy, document, err := guard.DocumentFrozen(&cfg, z)
	if err != nil {
		return schema.PolicyAnswer{}, nil, fmt.Errorf("config version %d: %w", cfg.Version, err)
	}
	if policy.Coarse {
		a.opt.Logger.Warn("the policy of the fail-closed hooks is too large for shims to store; while no broker answers, shims deny more calls than those hooks guard", "version", cfg.Version)
	}
	p.of, p.frozen, p.signer, p.made = act, f, signer, signer.Sign(document)
	return p.made, p.signer, nil
}
