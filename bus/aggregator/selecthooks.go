package aggregator

import (
	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// selectHooks finds the plan of an event. It answers an event that no hook matches.
type selectHooks struct{ a *Aggregator }

func (s selectHooks) pass(e *arrival) bool {
	span := e.span.Child(trace.Internal, "plan", "")
	e.plan = e.act.Plan(e.req.Agent, e.req.Event, e.req.Tool)
	span.Done()
	if e.plan.Empty() && !s.a.minds(e.act, e.plan, &e.req) {
		s.a.intake.beats.end(e.beat)
		e.verdict = schema.Verdict{Decision: schema.Continue, ConfigVersion: e.act.Config.Version}
		decided(e.span, e.act, e.req.Event, &e.verdict)
		t := e.answered()
		s.a.reply(t, s.a.nothing(e.act, e.frozen))
		s.a.report.Verdict(t, &e.verdict)
		e.judged = true
		return false
	}
	e.asked = &dispatch.Request{
		Routing: e.req.Routing, Attempt: e.req.Attempt, Deadline: e.at.Add(e.req.Left), Body: e.req.Body, Span: e.span, Waiting: e.from.waiting,
	}
	return true
}

// minds reports whether the stored state of an agent matters for an event without a worker to ask.
// It runs for every such event and therefore does not allocate.
func (a *Aggregator) minds(act *active, plan *dispatch.Plan, req *bus.EventRequest) bool {
	if plan.Guarded {
		return true // its body is read
	}
	mem := &a.opt.Memory
	if req.Event == schema.SessionStart && mem.Queue != nil && act.defers(req.Agent) {
		return true
	}
	if mem.Queue != nil && (len(req.Acks) > 0 || delivers(plan, req.Event) && a.brings(&req.Routing, req.Attempt)) {
		return true
	}
	for _, hook := range plan.Gates {
		if act.stages[hook].gate == nil {
			return true
		}
	}
	if act.observer(plan, req.Event, req.Tool) != nil {
		return true
	}
	if mem.Rounds == nil {
		return false
	}
	r, ok := mem.Rounds.Get(req.Agent)
	switch {
	case !ok:
		return false
	case r.Terminate:
		return true
	case len(plan.Gates) > 0:
		return r.Blocked() || r.Denials > 0
	}
	return len(plan.Deliver) > 0 && r.SoftDue()
}
