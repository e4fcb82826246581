package aggregator

import (
	"runtime/debug"

	"github.com/hookfabric/hookfabric/bus/aggregator/deliver"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// gated runs the hooks of a plan, unless a gate refuses the call.
func (j *judging) gated(act *stages.Config, plan *dispatch.Plan, req *dispatch.Request) schema.Verdict {
	if len(plan.Gates) > 0 {
		r := refusing{round: j.deliverer.Round(req.Agent)}
		for _, r.gate = range plan.Gates {
			if j.refuses(act, r.gate, req.Tool, r.round) && j.confirms(act, req, &r) {
				return j.refused(act, req, &r)
			}
		}
	}
	return j.dispatch(act, plan, req)
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
func (j *judging) confirms(act *stages.Config, req *dispatch.Request, r *refusing) bool {
	if act.Stage(r.gate).Gate == nil {
		return true // a gate that could not be made refuses in every round
	}
	if !r.asked {
		r.asked = true
		r.round, r.unsure = j.deliverer.LatestForCall(req, r.round)
	}
	return j.refuses(act, r.gate, req.Tool, r.round)
}

// refuses reports whether a gate refuses the tool. One that cannot be loaded
// refuses all of them.
func (j *judging) refuses(act *stages.Config, hook int, tool string, round *schema.Round) bool {
	gate := act.Stage(hook).Gate
	return gate == nil || round != nil && round.Blocked() && !j.passes(act, hook, tool)
}

// passes reports whether a gate lets a tool pass. A gate that panics refuses it.
func (j *judging) passes(act *stages.Config, hook int, tool string) (pass bool) {
	defer func() {
		if p := recover(); p != nil {
			j.gatePanicked(act, hook, p)
			pass = false
		}
	}()
	return act.Stage(hook).Gate.Passes(tool)
}

func (j *judging) gatePanicked(act *stages.Config, hook int, p any) {
	j.log.Error("a gate panicked", "hook", act.Hook(hook).Name, "panic", p, "stack", string(debug.Stack()))
}

// refused returns the verdict of a call that a gate refuses, unless a hook before the gate ends the
// call.
func (j *judging) refused(act *stages.Config, req *dispatch.Request, r *refusing) schema.Verdict {
	before := act.PlanBefore(req.Agent, req.Event, req.Tool, r.gate)
	v := j.dispatch(act, before, req)
	if req.Event.Terminal(v.Decision) {
		return v
	}
	h := act.Hook(r.gate)
	if err := act.Stage(r.gate).Err; err != nil {
		return dispatch.Fold(req.Event, v, dispatch.Settle(h, &schema.Outcome{Kind: schema.LoadError, Error: "its handler cannot be loaded: " + err.Error()}))
	}
	counted := j.deliverer.CountDenied(req, r.round, r.unsure)
	j.report.Ledger.Hard.Inc()
	v = dispatch.Fold(req.Event, v, dispatch.Settle(h, &schema.Outcome{Result: j.refusal(act, r.gate, req.Tool, counted)}))
	deliver.Terminate(&v, counted)
	return v
}

// refusal returns a gate's answer to the agent, which is always a deny.
func (j *judging) refusal(act *stages.Config, gate int, tool string, round *schema.Round) (r schema.Result) {
	defer func() {
		if p := recover(); p != nil {
			j.gatePanicked(act, gate, p)
			r = schema.Denied("the time of this round is over")
		}
	}()
	r = act.Stage(gate).Gate.Refuse(tool, round)
	if r.Decision != schema.Deny {
		r = schema.Denied(r.Reason)
	}
	return r
}
