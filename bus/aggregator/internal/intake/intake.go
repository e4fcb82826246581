// Package intake receives events and decides which of them may be judged. Events that come faster
// than they can be judged wait in its admission queue. It charges each event to the limits of its
// agent, and sends heartbeats for calls that are open.
//
// receiver.go receives an event and stamps it with the time, and admission.go holds those that wait.
// steps.go has the steps that an event passes here; pipeline.go of the aggregator puts them into
// their order. limits.go and large.go count what one agent uses, allowance.go what it stores, and
// excess.go who is over a limit. beat.go sends the heartbeats.
package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/schema"
)

// againShare is the part of the calls under way that repeated events may be: a broker that is only
// slow must not get twice the work.
const againShare = 8

// Readiness tells whether the broker may answer events.
type Readiness interface {
	// Ready reports whether it may now.
	Ready() bool
	// Wait returns nil as soon as it may.
	Wait(ctx context.Context) error
}

// Options are the parameters of [New].
type Options struct {
	Events    *nats.Conn
	Calls     int // bounds the events under way
	Limits    *Limits
	Readiness Readiness
	// Trivial reports whether an event is answered at once, because no hook and no stored state
	// concerns it.
	Trivial func(*bus.EventRequest) bool
	// Handle has an event pass the steps.
	Handle func(*Arrival)
	Report *observe.Report
}

// An Intake receives events.
type Intake struct {
	opt   Options
	ctx   context.Context //nolint:containedctx // the life of the aggregator
	first *receiver
	again *receiver // of those that shims repeat
	// beat sends a heartbeat of a call. A lost connection does not end the heartbeats: it may be back
	// when the next one is due.
	beat func(reply string)
}

// New makes an Intake that works until ctx ends. [Intake.Open] begins to receive.
func New(ctx context.Context, opt Options) *Intake {
	in := &Intake{opt: opt, ctx: ctx}
	in.beat = func(reply string) {
		_ = opt.Events.PublishMsg(&nats.Msg{Subject: reply, Header: nats.Header{schema.HeaderBeat: {"1"}}})
	}
	in.first, in.again = in.receiver(opt.Calls), in.receiver(max(1, opt.Calls/againShare))
	return in
}

func (in *Intake) receiver(size int) *receiver {
	r := newReceiver(in.ctx, size, in.opt.Handle, in.opt.Report.Log)
	r.queue.ready, r.queue.decide = in.opt.Readiness.Ready, in.admit
	return r
}

// Open begins to receive, unless it has begun.
func (in *Intake) Open() error {
	if in.first.sub != nil {
		return nil
	}
	first, err := in.opt.Events.QueueSubscribeSync(bus.EventsWildcard, bus.QueueAggregators)
	if err != nil {
		return fmt.Errorf("subscribing to events: %w", err)
	}
	again, err := in.opt.Events.SubscribeSync(bus.EventsWildcard + bus.AgainSuffix)
	if err != nil {
		return fmt.Errorf("subscribing to repeated events: %w", err)
	}
	return errors.Join(in.first.start(first), in.again.start(again))
}

// Drain receives no new events, and waits until those under way were handled.
func (in *Intake) Drain(ctx context.Context) error {
	return errors.Join(in.first.drain(ctx), in.again.drain(ctx))
}

// UnderWay returns how many events are under way.
func (in *Intake) UnderWay() int { return in.first.queue.underWay() + in.again.queue.underWay() }

// Waiting returns the gauge of the events that wait.
func (in *Intake) Waiting() prometheus.Collector {
	opts := prometheus.GaugeOpts{Namespace: "hookfabric", Name: "waiting", Help: "Events that wait because more arrive than the broker can judge at once."}
	return prometheus.NewGaugeFunc(opts, func() float64 {
		return float64(in.first.queue.held() + in.again.queue.held())
	})
}

// An Arrival is an event message with what the intake knows of it.
type Arrival struct {
	Msg *nats.Msg
	At  time.Time // when it was received
	Req bus.EventRequest
	Err error // why the event cannot be judged as it is
	// Charge is the event's share of the limits of its agent.
	Charge Charge
	// Judged is set when the event was judged: the queue measures how fast that is.
	Judged bool

	from   *receiver
	parsed bool
	waited time.Duration
	until  time.Time // when it leaves the admission queue
	late   bool      // it would not be judged in time
	beat   *callBeat // nil: its shim gets no heartbeats
}

// size returns about how many bytes an event takes while it waits.
func (e *Arrival) size() int { return len(e.Msg.Data) + arrivalSize }

// Overdue reports whether an event has waited for too long to be judged.
func (e *Arrival) Overdue() bool {
	return e.late || e.waited > e.Req.Left/2 || e.beat == nil && e.waited > beforeAgain
}

// Waits counts that the event begins to wait for workers (1), and that it continues (-1). While it
// waits, another event may use its place.
func (e *Arrival) Waits(n int) { e.from.waiting(n) }

// Answered returns the event as it is reported afterwards.
func (e *Arrival) Answered() *observe.Answered {
	return &observe.Answered{Routing: &e.Req.Routing, Msg: e.Msg, Arrived: e.At}
}

// BeginBeat begins the heartbeats of a call, unless they have begun.
func (in *Intake) BeginBeat(e *Arrival) {
	if e.beat == nil {
		e.beat = startBeat(time.Until(e.At.Add(schema.BeatEvery)), e.Msg.Reply, in.beat)
	}
}

// EndBeat ends the heartbeats of a call.
func (in *Intake) EndBeat(e *Arrival) {
	if e.beat != nil {
		e.beat.end()
		e.beat = nil
	}
}
