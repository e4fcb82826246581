package aggregator

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// judge runs the hooks of an event. Until the verdict is sent, its shim gets heartbeats.
func (j *judging) judge(e *event) bool {
	j.report.Metrics.InFlight.Inc()
	j.intake.BeginBeat(e.Arrival)
	e.verdict = j.judged(e)
	return true
}

// judged returns the verdict of an event's hooks. If the agent was frozen while they ran, it denies
// the call.
func (j *judging) judged(e *event) schema.Verdict {
	v := j.gated(e.act, e.plan, e.asked)
	j.freezes.overtake(e.act, &e.Req.Routing, &v)
	return v
}

// dispatch runs the hooks of a plan. If the dispatcher panics, a guarded call is denied.
func (j *judging) dispatch(act *stages.Config, plan *dispatch.Plan, req *dispatch.Request) (v schema.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			bus.InTrace(j.log, req.Trace).Error("the aggregator panicked", "event_id", req.ID, "panic", p, "stack", string(debug.Stack()))
			v = schema.Verdict{HookErrors: []string{fmt.Sprintf("the aggregator failed: %v", p)}}
			if plan.Guarded {
				v.Decision, v.Reason = req.Event.Blocking(), "the aggregator failed, and a fail-closed hook guards this call"
			}
		}
	}()
	return j.dispatcher.Dispatch(j.ctx, act.Snapshot, plan, req)
}

// recheckLease looks at the lease again before a tool call passes: while its hooks ran, the lease
// may have lapsed, and an operator may have frozen the agent without waiting for this broker.
func (j *judging) recheckLease(e *event) bool {
	if e.Req.Event != schema.PreToolUse || e.Req.Event.Terminal(e.verdict.Decision) || j.readiness.leased() {
		return true
	}
	if !j.intake.AwaitReady(e.Arrival, time.Until(e.asked.Deadline)) {
		j.report.Metrics.InFlight.Dec()
		return false
	}
	j.freezes.overtake(e.act, &e.Req.Routing, &e.verdict)
	return true
}

// remember updates the stored state of the agent, and adds its messages to the verdict.
func (j *judging) remember(e *event) bool {
	j.deliverer.Remember(e.act, e.plan, e.asked, e.Req.Acks, &e.verdict)
	return true
}
