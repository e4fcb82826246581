// Package intake receives events and decides which of them may be judged. Events that come faster
// than they can be judged wait in its admission queue. It charges each event to the limits of its
// agent, and sends heartbeats for calls that are open.
//
// receiver.go receives an event, stamps it with the time, and sends heartbeats; admission.go holds
// those that wait, and large events. steps.go has the steps that an event passes here; pipeline.go of
// the aggregator puts them into their order. limits.go counts what one agent uses and stores, and
// which agents are over a limit.
package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/schema"
)

// spare is how many goroutines of a receiver wait for the next event. A call's stack is deep, and
// to grow a new one costs a good part of a short call.
const spare = 64

// A receiver takes the messages of one subscription on many goroutines. The goroutine that receives a
// message stamps it with the time and handles it itself, so that no other one has to wake up. Another
// one is always there to receive the next. Messages that cannot be handled at once wait in the queue.
type receiver struct {
	sub    *nats.Subscription
	handle func(e *Arrival)
	log    *observe.Log
	ctx    context.Context //nolint:containedctx // the receiver's life
	queue  *admissionQueue
	idle   atomic.Int32 // goroutines that receive
	done   sync.WaitGroup
}

// newReceiver makes a receiver that handles at most size messages at a time.
func newReceiver(ctx context.Context, size int, handle func(*Arrival), log *observe.Log) *receiver {
	return &receiver{handle: handle, log: log, ctx: ctx, queue: newAdmissionQueue(size)}
}

// start begins to receive from sub.
func (r *receiver) start(sub *nats.Subscription) error {
	if err := sub.SetPendingLimits(-1, r.queue.maxBytes); err != nil {
		return fmt.Errorf("limiting the events that wait: %w", err)
	}
	r.sub = sub
	r.done.Go(r.serve)
	return nil
}

// serve receives and handles messages until there are no more, or enough others wait for them.
func (r *receiver) serve() {
	for {
		if r.idle.Add(1) > int32(min(spare, r.queue.size)) {
			if r.idle.Add(-1) > 0 {
				return
			}
			continue // the others have just received something
		}
		e, more := r.receive()
		last := r.idle.Add(-1) == 0
		if more && last {
			r.done.Go(r.serve)
		}
		if e == nil {
			return
		}
		r.work(e)
	}
}

// work handles an event, and then those that wait.
func (r *receiver) work(e *Arrival) {
	for e != nil {
		r.handle(e)
		if e = r.queue.ended(e); e != nil {
			r.startNext() // the one that ended may have made room for more
		}
	}
}

// startNext handles events that wait on other goroutines, while there is room for them.
func (r *receiver) startNext() {
	for e := r.queue.next(); e != nil; e = r.queue.next() {
		r.done.Go(func() {
			r.work(e)
			r.serve()
		})
	}
}

// receive returns the next event that may be handled, and nil if others receive while events wait.
// It reports whether more messages may come.
func (r *receiver) receive() (e *Arrival, more bool) {
	for {
		m, err := r.sub.NextMsgWithContext(r.ctx)
		if err != nil {
			if r.continues(err) {
				continue
			}
			return nil, false
		}
		next, begun, ok := r.queue.add(&Arrival{Msg: m, At: time.Now(), from: r})
		if !ok {
			r.log.Lost()
		}
		if begun {
			r.done.Go(r.admit)
		}
		if next != nil || r.idle.Load() > 1 { // one is enough, and keeps the order
			return next, true
		}
	}
}

// continues logs why no message was received, and reports whether others may be.
func (r *receiver) continues(err error) bool {
	switch {
	case errors.Is(err, nats.ErrSlowConsumer):
		r.log.Lost()
		return true
	case errors.Is(err, nats.ErrNoResponders):
		// A client sent an event that looks like the server's answer without a responder.
		r.log.Warn("cannot answer an event that has a NATS status instead of headers")
		return true
	case r.sub.IsValid() && r.ctx.Err() == nil:
		r.log.Error("this broker cannot receive events any more; restart it", "error", err)
	}
	return false
}

// admit decides about the events that wait, until none does.
func (r *receiver) admit() {
	t := time.NewTicker(admitEvery)
	defer t.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case now := <-t.C:
			late, more := r.queue.admit(now)
			for _, e := range late {
				r.handle(e)
			}
			if !more {
				return
			}
		}
	}
}

// waiting counts calls that begin to wait for workers, and calls that continue (negative n). While
// a call waits, another event may use its place.
func (r *receiver) waiting(n int) {
	if r.queue.asleep.Add(int32(n)); n > 0 {
		r.startNext()
	}
}

// park releases the bytes of a large event while wait runs, and returns the result of wait.
func (r *receiver) park(size int, wait func() bool) bool {
	r.queue.bytes.Release(int64(size))
	r.waiting(1)
	ok := wait()
	r.waiting(-1)
	_ = r.queue.bytes.Acquire(context.Background(), int64(size)) // every holder releases its bytes in time
	return ok
}

// drain receives no new messages, and waits until the last one has been handled.
func (r *receiver) drain(ctx context.Context) error {
	if r.sub == nil {
		return nil // it never began
	}
	if err := r.sub.Drain(); err != nil && r.sub.IsValid() {
		return fmt.Errorf("draining events: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.done.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d calls were still under way: %w", r.queue.underWay(), context.Cause(ctx))
	}
}

// A callBeat sends a heartbeat every 250 ms for one call that is still alive. Nearly all calls end
// long before the first one.
type callBeat struct {
	send  func(reply string)
	reply string

	mu    sync.Mutex // guards the following fields
	timer *time.Timer
	ended bool
}

// startBeat sends the first beat after a time.
func startBeat(first time.Duration, reply string, send func(reply string)) *callBeat {
	b := &callBeat{send: send, reply: reply}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(first, b.beat)
	return b
}

func (b *callBeat) beat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.send(b.reply)
		b.timer.Reset(schema.BeatEvery)
	}
}

// end ends the beats. None is sent after it has returned.
func (b *callBeat) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.timer.Stop()
}

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
