package aggregator

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// steps returns the steps that an event passes, in order. A step either ends the event's way, with
// or without an answer, or hands it on.
func (a *Aggregator) steps() pipeline {
	return pipeline{
		checkReply{&a.report},
		decode{},
		dropStale{&a.intake.beats, &a.report},
		checkLease{a},
		chargeAgent{&a.intake.limits},
		awaitLarge{a},
		startSpan{&a.config, a.opt.Tracer},
		verify{a},
		notice{a},
		checkFreeze{a},
		selectHooks{a},
		shed{a},
		judge{a},
		recheckLease{a},
		remember{a},
		sendVerdict{a},
	}
}

// A step is one part of the way of an event.
type step interface {
	// pass reports whether the event goes on to the next step.
	pass(e *arrival) bool
}

// A pipeline is the steps of an event in their order.
type pipeline []step

// run passes an event through the steps.
func (p pipeline) run(e *arrival) {
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
		_, names[i], _ = strings.Cut(fmt.Sprintf("%T", s), ".")
	}
	return strings.Join(names, "\n")
}

// handle passes an event of a receiver through the steps.
func (a *Aggregator) handle(e *arrival) {
	defer a.intake.limits.leave(&e.charge)
	defer func() { e.span.Done() }()
	a.intake.pipeline.run(e)
}

// An arrival is an event message with the results of the steps.
type arrival struct {
	waiter
	judgement

	msg  *nats.Msg
	at   time.Time // when it was received
	from *receiver
	req  bus.EventRequest
	err  error // why the event cannot be judged as it is
	// charge is the event's share of the limits of its agent.
	charge charge
	span   *trace.Span // nil: the event is not traced
}

// A waiter is how long an event waited, and may wait.
type waiter struct {
	waited time.Duration
	beat   *callBeat // nil: its shim gets no heartbeats
	until  time.Time // when it leaves the admission queue
	late   bool      // it would not be judged in time
	parsed bool
}

// A judgement is the state that an event is judged by, and the verdict.
type judgement struct {
	act     *active
	frozen  *frozen
	plan    *dispatch.Plan
	asked   *dispatch.Request
	verdict schema.Verdict
	judged  bool
}

// size returns about how many bytes an event takes while it waits.
func (e *arrival) size() int { return len(e.msg.Data) + arrivalSize }

// overdue reports whether an event has waited for too long to be judged.
func (e *arrival) overdue() bool {
	return e.late || e.waited > e.req.Left/2 || e.beat == nil && e.waited > beforeAgain
}

// answered returns the event as it is reported afterwards.
func (e *arrival) answered() *observe.Answered {
	return &observe.Answered{Routing: &e.req.Routing, Msg: e.msg, Arrived: e.at}
}
