package aggregator

import (
	"context"
	"log/slog"
	"strings"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/deliver"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// steps returns the steps that an event passes, in order. A step either ends the event's way, with
// or without an answer, or hands it on.
func (j *judging) steps() pipeline {
	in := j.intake
	return pipeline{
		{"checkReply", arriving(in.CheckReply)},
		{"decode", arriving(in.Decode)},
		{"dropStale", arriving(in.DropStale)},
		{"checkLease", arriving(in.CheckLease)},
		{"chargeAgent", arriving(in.ChargeAgent)},
		{"awaitLarge", arriving(in.AwaitLarge)},
		{"startSpan", j.startSpan},
		{"verify", j.verify},
		{"notice", j.notice},
		{"checkFreeze", j.checkFreeze},
		{"selectHooks", j.selectHooks},
		{"shed", j.shed},
		{"judge", j.judge},
		{"recheckLease", j.recheckLease},
		{"remember", j.remember},
		{"sendVerdict", j.sendVerdict},
	}
}

// A step is one part of the way of an event. pass reports whether the event goes on to the next one.
type step struct {
	name string
	pass func(e *event) bool
}

// arriving makes a step of one that only needs the arrival.
func arriving(pass func(*intake.Arrival) bool) func(*event) bool {
	return func(e *event) bool { return pass(e.Arrival) }
}

// A pipeline is the steps of an event in their order.
type pipeline []step

// run passes an event through the steps.
func (p pipeline) run(e *event) {
	for _, s := range p {
		if !s.pass(e) {
			return
		}
	}
}

// String returns the names of the steps, one a line.
func (p pipeline) String() string {
	names := make([]string, len(p))
	for i, s := range p {
		names[i] = s.name
	}
	return strings.Join(names, "\n")
}

// A judging is what the steps of an event need after its receipt.
type judging struct {
	ctx        context.Context //nolint:containedctx // the life of the calls under way
	pipeline   pipeline
	config     *configuration
	intake     *intake.Intake
	limits     *intake.Limits
	readiness  *readiness
	freezes    *freezeState
	deliverer  *deliver.Deliverer
	dispatcher *dispatch.Dispatcher
	replies    *replies
	tracer     *trace.Tracer
	report     *observe.Report
	log        *slog.Logger
}

// An event is an arrival with the state that it is judged by, and the verdict.
type event struct {
	*intake.Arrival

	act     *stages.Config
	frozen  *frozen
	plan    *dispatch.Plan
	asked   *dispatch.Request
	verdict schema.Verdict
	span    *trace.Span // nil: the event is not traced
}

// handle passes an event through the steps.
func (j *judging) handle(arrived *intake.Arrival) {
	e := &event{Arrival: arrived}
	defer j.intake.Release(arrived)
	defer func() { e.span.Done() }()
	j.pipeline.run(e)
}

// request returns the event in the dispatcher's form.
func (e *event) request() *dispatch.Request {
	return &dispatch.Request{
		Routing: e.Req.Routing, Attempt: e.Req.Attempt, Deadline: e.At.Add(e.Req.Left), Body: e.Req.Body, Span: e.span, Waiting: e.Waits,
	}
}

// trivial reports whether an event is answered at once: no hook matches it, and the stored state of
// its agent does not matter.
func (j *judging) trivial(req *bus.EventRequest) bool {
	act := j.config.active.Load()
	plan := act.Plan(req.Agent, req.Event, req.Tool)
	return plan.Empty() && !j.concerned(act, plan, req)
}
