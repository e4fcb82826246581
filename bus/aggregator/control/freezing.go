package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

const (
	// freezeTime is how long a request waits by default until every broker applies the change:
	// longer than the lease of a broker that died.
	freezeTime = 20 * time.Second
	// maxFreezeTime is the longest time that a request may wait.
	maxFreezeTime = 5 * time.Minute
)

// freeze freezes agents, or lists the freezes if the request names none.
func (c *Control) freeze(ctx context.Context, _ string, req *schema.FreezeRequest) (*schema.FreezeAnswer, error) {
	if err := c.checkFreeze(req); err != nil {
		return nil, err
	}
	if req.Agents == "" {
		s := c.opt.Freezes.Now()
		return &schema.FreezeAnswer{Frozen: listed(s.Freezes), Version: s.Version}, nil
	}
	return c.changeFreezes(ctx, schema.VerbFreeze, req, func(ctx context.Context) (freezes.Change, error) {
		return c.opt.Freezes.Freeze(ctx, schema.Freeze{Agents: req.Agents, Reason: req.Reason, By: req.By}, req.Version)
	})
}

// thaw reverses freeze.
func (c *Control) thaw(ctx context.Context, _ string, req *schema.FreezeRequest) (*schema.FreezeAnswer, error) {
	if err := c.checkFreeze(req); err != nil {
		return nil, err
	}
	return c.changeFreezes(ctx, schema.VerbThaw, req, func(ctx context.Context) (freezes.Change, error) {
		return c.opt.Freezes.Thaw(ctx, req.Agents, req.Version)
	})
}

func (c *Control) checkFreeze(req *schema.FreezeRequest) error {
	switch {
	case c.opt.Freezes == nil:
		return unavailable("this broker does not store freezes")
	case req.Within < 0 || req.Within.Std() > maxFreezeTime:
		return badRequest("within is %s; use at most %s", req.Within, maxFreezeTime)
	}
	return nil
}

// listed returns a list that is not nil.
func listed(all []schema.Freeze) []schema.Freeze {
	if all == nil {
		return []schema.Freeze{}
	}
	return all
}

// changeFreezes makes a change, and waits until every broker applies it.
func (c *Control) changeFreezes(ctx context.Context, verb string, req *schema.FreezeRequest, apply func(context.Context) (freezes.Change, error)) (*schema.FreezeAnswer, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(req.Within.Std(), freezeTime))
	defer cancel()
	change, err := apply(ctx)
	if err != nil {
		return nil, err
	}
	if change.Changed {
		c.reportFreeze(verb, req, &change)
	}
	answer := &schema.FreezeAnswer{
		Changed: change.Changed, Freeze: &change.Freeze, Frozen: listed(change.State.Freezes), Version: change.State.Version,
	}
	c.confirmed(ctx, answer)
	answer.Took = schema.Duration(time.Since(began))
	return answer, nil
}

// reportFreeze reports a freeze or thaw to the log and the feed: the client, the agents and the
// reason.
func (c *Control) reportFreeze(verb string, req *schema.FreezeRequest, change *freezes.Change) {
	done := &schema.FreezeChange{Action: verb, Agents: change.Freeze.Agents, Reason: req.Reason, By: req.By, Version: change.State.Version}
	if verb == schema.VerbThaw {
		done.Since = change.Freeze.Since
	}
	c.opt.Logger.Warn("an operator changed the freezes through this broker", "action", verb, "agents", done.Agents, "by", done.By, "reason", done.Reason)
	c.opt.Report.Feed.All(schema.FreezeRecord(done))
}

// confirmed waits until all brokers apply a version of the freezes, or ctx ends, and adds the
// brokers that do to the answer.
func (c *Control) confirmed(ctx context.Context, answer *schema.FreezeAnswer) {
	answer.Confirmed = []string{c.opt.Node} // this broker applied the version when it was stored
	for c.opt.Configs != nil {
		nodes, err := c.opt.Configs.Nodes(ctx)
		switch {
		case err == nil:
			answer.Confirmed, answer.Missing = c.byFreeze(answer.Version, nodes)
			answer.Trouble = ""
		case ctx.Err() == nil || len(answer.Missing) == 0:
			answer.Trouble = err.Error()
		}
		if err == nil && len(answer.Missing) == 0 || kv.Rest(ctx, lookEvery) != nil {
			return
		}
	}
}

// byFreeze sorts the brokers by whether their leases confirm a version of the freezes. This broker
// applies it. But until its own lease confirms that too, the others count as missing: the list may
// be old, or the brokers may be unable to store their leases.
func (c *Control) byFreeze(version uint64, nodes []state.Node) (confirmed, missing []string) {
	own, known := c.opt.Lease == nil, c.opt.Freezes.Now().Version
	for _, n := range nodes {
		goes := n.Freeze >= version && n.Freeze <= known // a broker with a later version may have missed a rollback of the freezes
		switch {
		case n.ID == c.opt.Node:
			own = goes
		case goes:
			confirmed = append(confirmed, n.ID)
		default:
			missing = append(missing, n.ID)
		}
	}
	if own {
		confirmed = append(confirmed, c.opt.Node)
	} else {
		missing = append(missing, c.opt.Node)
	}
	slices.Sort(confirmed)
	slices.Sort(missing)
	return confirmed, missing
}

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
