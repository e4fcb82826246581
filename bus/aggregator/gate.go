package aggregator

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/schema"
)

// gated runs the hooks of a plan, unless a gate refuses the call.
func (a *Aggregator) gated(act *active, plan *dispatch.Plan, req *dispatch.Request) schema.Verdict {
	if len(plan.Gates) > 0 {
		r := refusing{round: a.round(req.Agent)}
		for _, r.gate = range plan.Gates {
			if a.refuses(act, r.gate, req.Tool, r.round) && a.confirms(act, req, &r) {
				return a.refused(act, req, &r)
			}
		}
	}
	return a.dispatch(act, plan, req)
}

// refusing is the state of a call that a gate refuses.
type refusing struct {
	gate  int // index of the hook
	round *schema.Round
	// asked reports that the leader was asked for the round. If it did not answer in time, round is
	// the mirror's, and unsure is the reason.
	asked  bool
	unsure error
}

// confirms reports whether a gate still refuses the call with the round that the leader has. A
// broker that was cut off may know only the round before, whose limit does not apply to this one.
func (a *Aggregator) confirms(act *active, req *dispatch.Request, r *refusing) bool {
	if act.stages[r.gate].gate == nil {
		return true // a gate that could not be made refuses in every round
	}
	if !r.asked {
		ctx, cancel := a.budgeted(req.Deadline)
		defer cancel()
		r.asked = true
		r.round, r.unsure = a.latest(ctx, req.Agent, r.round)
	}
	return a.refuses(act, r.gate, req.Tool, r.round)
}

// latest returns an agent's round from the leader. If the leader cannot be asked, it returns the
// round known here and the error. It returns nil if the agent has no round, or if the known one is
// too old.
func (a *Aggregator) latest(ctx context.Context, agent string, known *schema.Round) (*schema.Round, error) {
	if a.opt.Memory.Rounds == nil {
		return known, nil
	}
	r, ok, err := a.opt.Memory.Rounds.Latest(ctx, agent)
	switch {
	case err != nil && a.opt.Memory.Rounds.Ready() != nil:
		return nil, err // the known round may have ended long ago
	case err != nil:
		return known, err
	case !ok:
		return nil, nil
	}
	return &r, nil
}

// refuses reports whether a gate refuses the tool. One that cannot be loaded
// refuses all of them.
func (a *Aggregator) refuses(act *active, hook int, tool string, round *schema.Round) bool {
	gate := act.stages[hook].gate
	return gate == nil || round != nil && round.Blocked() && !a.passes(act, hook, tool)
}

// passes reports whether a gate lets a tool pass. A gate that panics refuses it.
func (a *Aggregator) passes(act *active, hook int, tool string) (pass bool) {
	defer func() {
		if p := recover(); p != nil {
			a.gatePanicked(act, hook, p)
			pass = false
		}
	}()
	return act.stages[hook].gate.Passes(tool)
}

func (a *Aggregator) gatePanicked(act *active, hook int, p any) {
	a.opt.Logger.Error("a gate panicked", "hook", act.Config.Hooks[hook].Name, "panic", p, "stack", string(debug.Stack()))
}

// refused returns the verdict of a call that a gate refuses, unless a hook before the gate ends the
// call.
func (a *Aggregator) refused(act *active, req *dispatch.Request, r *refusing) schema.Verdict {
	before := act.PlanBefore(req.Agent, req.Event, req.Tool, r.gate)
	v := a.dispatch(act, before, req)
	if req.Event.Terminal(v.Decision) {
		return v
	}
	h := &act.Config.Hooks[r.gate]
	if err := act.stages[r.gate].err; err != nil {
		return dispatch.Fold(req.Event, v, dispatch.Settle(h, &schema.Outcome{Kind: schema.LoadError, Error: "its handler cannot be loaded: " + err.Error()}))
	}
	counted := a.denied(req, r)
	a.report.Ledger.Hard.Inc()
	v = dispatch.Fold(req.Event, v, dispatch.Settle(h, &schema.Outcome{Result: a.refusal(act, r.gate, req.Tool, counted)}))
	terminate(&v, counted)
	return v
}

// terminate adds to a verdict that the agent's run is to end, if it is.
func terminate(v *schema.Verdict, round *schema.Round) {
	if round.Terminate {
		v.Terminate = &schema.Terminate{Reason: fmt.Sprintf("%d calls in a row were denied after the hard limit of round %d", rounds.MaxDenials, round.Number)}
	}
}

// denied counts a refused call. If that takes too long, the call is still refused, and counted
// later.
func (a *Aggregator) denied(req *dispatch.Request, r *refusing) *schema.Round {
	agent, start, id := req.Agent, r.round.Start, req.ID
	counted, err := schema.Round{}, r.unsure
	if err == nil {
		ctx, cancel := a.budgeted(req.Deadline)
		defer cancel()
		counted, err = a.opt.Memory.Rounds.Denied(ctx, agent, start, id)
	}
	if err != nil {
		a.opt.Logger.Warn("a denied call could not be counted in time", "agent", agent, "event_id", id, "error", err)
		a.background(func(ctx context.Context) error {
			_, err := a.opt.Memory.Rounds.Denied(ctx, agent, start, id)
			return err
		})
		counted = *r.round
		counted.Denials++
	}
	return &counted
}

// refusal returns a gate's answer to the agent, which is always a deny.
func (a *Aggregator) refusal(act *active, gate int, tool string, round *schema.Round) (r schema.Result) {
	defer func() {
		if p := recover(); p != nil {
			a.gatePanicked(act, gate, p)
			r = schema.Denied("the time of this round is over")
		}
	}()
	r = act.stages[gate].gate.Refuse(tool, round)
	if r.Decision != schema.Deny {
		r = schema.Denied(r.Reason)
	}
	return r
}

// ended adds to a verdict that the agent's run is to end, unless the call is one
// by which the agent ends it itself. It notes calls that were let through.
func (a *Aggregator) ended(plan *dispatch.Plan, req *dispatch.Request, v *schema.Verdict) {
	round := a.round(req.Agent)
	if round == nil {
		return
	}
	passed := len(plan.Gates) > 0 && !req.Event.Terminal(v.Decision)
	if passed && round.Denials > 0 {
		agent := req.Agent
		a.background(func(ctx context.Context) error { return a.opt.Memory.Rounds.Passed(ctx, agent) })
	}
	if passed || v.Terminate != nil || !round.Terminate {
		return
	}
	ctx, cancel := a.budgeted(req.Deadline)
	defer cancel()
	if round, _ = a.latest(ctx, req.Agent, round); round != nil { // if the leader does not answer, the round known here counts
		terminate(v, round)
	}
}
