package aggregator

import (
	"fmt"
	"runtime/debug"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// judge runs the hooks of an event. Until the verdict is sent, its shim gets heartbeats.
type judge struct{ a *Aggregator }

func (s judge) pass(e *arrival) bool {
	s.a.report.Metrics.InFlight.Inc()
	if e.beat == nil {
		e.beat = s.a.intake.beats.begin(e.msg.Reply, e.at)
	}
	e.verdict = s.a.judged(e.act, e.plan, e.asked)
	return true
}

// judged returns the verdict of a plan's hooks. If the agent was frozen while they ran, it denies
// the call.
func (a *Aggregator) judged(act *active, plan *dispatch.Plan, req *dispatch.Request) schema.Verdict {
	v := a.gated(act, plan, req)
	a.overtaken(act, &req.Routing, &v)
	return v
}

// dispatch runs the hooks of a plan. If the dispatcher panics, a guarded call is denied.
func (a *Aggregator) dispatch(act *active, plan *dispatch.Plan, req *dispatch.Request) (v schema.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			bus.InTrace(a.opt.Logger, req.Trace).Error("the aggregator panicked", "event_id", req.ID, "panic", p, "stack", string(debug.Stack()))
			v = schema.Verdict{HookErrors: []string{fmt.Sprintf("the aggregator failed: %v", p)}}
			if plan.Guarded {
				v.Decision, v.Reason = req.Event.Blocking(), "the aggregator failed, and a fail-closed hook guards this call"
			}
		}
	}()
	return a.workers.dispatcher.Dispatch(a.life.ctx, act.Snapshot, plan, req)
}
