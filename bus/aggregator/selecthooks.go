package aggregator

import (
	"slices"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// notice records that the agent of an event is active.
func (j *judging) notice(e *event) bool {
	j.deliverer.Notice(&e.Req.Routing, e.Req.Body)
	return true
}

// selectHooks finds the plan of an event. It answers an event that no hook matches.
func (j *judging) selectHooks(e *event) bool {
	span := e.span.Child(trace.Internal, "plan", "")
	e.plan = e.act.Plan(e.Req.Agent, e.Req.Event, e.Req.Tool)
	span.Done()
	if !e.plan.Empty() || j.concerned(e.act, e.plan, &e.Req) {
		e.asked = e.request()
		return true
	}
	j.intake.EndBeat(e.Arrival)
	e.verdict = schema.Verdict{Decision: schema.Continue, ConfigVersion: e.act.Config.Version}
	e.decided()
	t := e.Answered()
	j.replies.sendEmpty(t, e.act, e.frozen)
	j.report.Verdict(t, &e.verdict)
	e.Judged = true
	return false
}

// concerned reports whether an event without a worker to ask needs more than an empty verdict. It
// runs for every such event and therefore does not allocate. The body of a guarded event is read.
func (j *judging) concerned(act *stages.Config, plan *dispatch.Plan, req *bus.EventRequest) bool {
	broken := func(hook int) bool { return act.Stage(hook).Gate == nil }
	return plan.Guarded || slices.ContainsFunc(plan.Gates, broken) || j.deliverer.Concerns(act, plan, req)
}
