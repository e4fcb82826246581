package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
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
