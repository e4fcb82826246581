package aggregator

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// freezeTime is how long a request waits by default until every broker applies the change:
	// longer than the lease of a broker that died.
	freezeTime = 20 * time.Second
	// maxFreezeTime is the longest time that a request may wait.
	maxFreezeTime = 5 * time.Minute
	// maxFreezing bounds such requests under way. They have slots of their own, so that no other
	// request delays one. A client repeats its request many times while the broker waits for
	// another broker.
	maxFreezing = 512
)

// freezing answers a request to freeze or thaw agents.
func (a *Aggregator) freezing(verb, agent string, r micro.Request) (any, error) {
	var req schema.FreezeRequest
	if err := readRequest(r, &req); err != nil {
		return nil, err
	}
	switch {
	case agent != "":
		return nil, badRequest("the request names its agents; send it to hook.v1.ctl.%s._", verb)
	case a.opt.Freezes == nil:
		return nil, unavailable("this broker does not store freezes")
	case req.Within < 0 || req.Within.Std() > maxFreezeTime:
		return nil, badRequest("within is %s; use at most %s", req.Within, maxFreezeTime)
	case verb == schema.VerbFreeze && req.Agents == "":
		return a.listFrozen(), nil
	}
	if err := a.notLate(); err != nil {
		return nil, err
	}
	select {
	case a.freezes.slots <- struct{}{}:
	default:
		return nil, unavailable("too many freeze and thaw requests are already under way; try again")
	}
	return memorising{
		answer: func(ctx context.Context) (any, error) {
			answer, err := a.Freeze(ctx, verb, &req)
			return answer, coded(a.explained(err))
		},
		release: func() { <-a.freezes.slots },
	}, nil
}

func (a *Aggregator) listFrozen() *schema.FreezeAnswer {
	s := a.opt.Freezes.Now()
	return &schema.FreezeAnswer{Frozen: some(s.Freezes), Version: s.Version}
}

// some returns a list that is not nil.
func some(all []schema.Freeze) []schema.Freeze {
	if all == nil {
		return []schema.Freeze{}
	}
	return all
}

// Freeze freezes agents, or thaws them, and waits until every broker applies the change.
func (a *Aggregator) Freeze(ctx context.Context, verb string, req *schema.FreezeRequest) (*schema.FreezeAnswer, error) {
	began := time.Now()
	within := req.Within.Std()
	if within == 0 {
		within = freezeTime
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var change freezes.Change
	var err error
	if verb == schema.VerbThaw {
		change, err = a.opt.Freezes.Thaw(ctx, req.Agents, req.Version)
	} else {
		change, err = a.opt.Freezes.Freeze(ctx, schema.Freeze{Agents: req.Agents, Reason: req.Reason, By: req.By}, req.Version)
	}
	if err != nil {
		return nil, err
	}
	if change.Changed {
		a.changed(verb, req, &change)
	}
	answer := &schema.FreezeAnswer{
		Changed: change.Changed, Freeze: &change.Freeze, Frozen: some(change.State.Freezes), Version: change.State.Version,
	}
	a.confirmed(ctx, answer)
	answer.Took = schema.Duration(time.Since(began))
	return answer, nil
}

// changed reports a freeze or thaw to the log and the feed: the client, the agents and the reason.
func (a *Aggregator) changed(verb string, req *schema.FreezeRequest, c *freezes.Change) {
	done := &schema.FreezeChange{Action: verb, Agents: c.Freeze.Agents, Reason: req.Reason, By: req.By, Version: c.State.Version}
	if verb == schema.VerbThaw {
		done.Since = c.Freeze.Since
	}
	a.opt.Logger.Warn("an operator changed the freezes through this broker", "action", verb, "agents", done.Agents, "by", done.By, "reason", done.Reason)
	a.report.Feed.All(schema.FreezeRecord(done))
}

// confirmed waits until all brokers apply a version of the freezes, or ctx ends, and adds the
// brokers that do to the answer.
func (a *Aggregator) confirmed(ctx context.Context, answer *schema.FreezeAnswer) {
	answer.Confirmed = []string{a.opt.Node} // this broker applied the version when it was stored
	for a.opt.Configs != nil {
		nodes, err := a.opt.Configs.Nodes(ctx)
		switch {
		case err == nil:
			answer.Confirmed, answer.Missing = a.goBy(answer.Version, nodes)
			answer.Trouble = ""
		case ctx.Err() == nil || len(answer.Missing) == 0:
			answer.Trouble = err.Error()
		}
		if err == nil && len(answer.Missing) == 0 || kv.Rest(ctx, lookEvery) != nil {
			return
		}
	}
}

// goBy sorts the brokers by whether their leases confirm a version of the freezes. This broker
// applies it. But until its own lease confirms that too, the others count as missing: the list may
// be old, or the brokers may be unable to store their leases.
func (a *Aggregator) goBy(version uint64, nodes []state.Node) (confirmed, missing []string) {
	said, known := a.opt.Lease == nil, a.opt.Freezes.Now().Version
	for _, n := range nodes {
		goes := n.Freeze >= version && n.Freeze <= known // a broker with a later version may have missed a rollback of the freezes
		switch {
		case n.ID == a.opt.Node:
			said = goes
		case goes:
			confirmed = append(confirmed, n.ID)
		default:
			missing = append(missing, n.ID)
		}
	}
	if said {
		confirmed = append(confirmed, a.opt.Node)
	} else {
		missing = append(missing, a.opt.Node)
	}
	slices.Sort(confirmed)
	slices.Sort(missing)
	return confirmed, missing
}
