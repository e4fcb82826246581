package aggregator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"github.com/hookfabric/hookfabric/schema/trace"
)

// spare is how many goroutines of a crew wait for the next event; more are
// made when they are needed and end when they are not.
const spare = 64

// crew receives the messages of one subscription on many goroutines: whoever
// receives a message also handles it, so that none is handed on, and somebody
// else is always there to receive the next. The goroutines stay, because a
// call's stack is deep and growing it anew costs a good part of a short call.
type crew struct {
	sub *nats.Subscription
	// handle does with a message what is to be done, and reports whether that was to
	// judge it.
	handle func(c *crew, e arrival) (judged bool)
	log    *slog.Logger
	tide   tide
	lobby  lobby
	judged atomic.Int64        // how many messages were
	taken  atomic.Int64        // how many messages were taken from sub
	ctx    context.Context     //nolint:containedctx // the crew's life
	slots  chan struct{}       // bounds the goroutines
	bytes  *semaphore.Weighted // bounds what the calls under way hold
	idle   atomic.Int32        // how many of them wait for a message
	busy   atomic.Int32        // how many handle one
	asleep atomic.Int32        // how many of those wait for workers
	wait   func(int)           // counts them
	done   sync.WaitGroup
}

// An arrival is a message that came.
type arrival struct {
	msg *nats.Msg
	at  time.Time // when it had come, at the latest
	// beat is the sign of life of one that waited in the lobby; nil: it did not.
	beat *callBeat
	// until is until when it may wait there.
	until time.Time
	// late: it would not be judged in time.
	late bool
	toll toll
	// span is what is told of it to those who follow traces; nil: nobody does.
	span *trace.Span
}

// newCrew makes a crew of at most size goroutines.
func newCrew(ctx context.Context, size int, handle func(*crew, arrival) bool, log *slog.Logger) *crew {
	c := &crew{handle: handle, log: log, ctx: ctx, slots: make(chan struct{}, size), bytes: semaphore.NewWeighted(maxUnderWay)}
	c.wait = c.waiting
	return c
}

// maxUnderWay bounds the events that are being judged, in bytes. Each may be
// copied once with a rewrite in it, and once for a worker.
const maxUnderWay = 128 << 20

// The events that wait here are bounded, in bytes, to a part of the memory that the
// process keeps to: there are two crews, and what waits takes three times its bytes.
const (
	partWaiting = 16
	minWaiting  = 32 << 20
	maxWaiting  = 256 << 20
)

// waiting is that bound.
func waiting() int {
	return int(min(max(debug.SetMemoryLimit(-1)/partWaiting, minWaiting), maxWaiting))
}

// start begins to receive from sub.
func (c *crew) start(sub *nats.Subscription) error {
	if err := sub.SetPendingLimits(-1, waiting()); err != nil {
		return fmt.Errorf("limiting the events that wait: %w", err)
	}
	c.sub, c.lobby.most = sub, waiting()/partLobby
	c.tide.come, c.tide.waits, c.tide.then = c.come, c.waits, c.gather
	c.more()
	return nil
}

// most is how many goroutines of a crew may want a processor at once, or few more: those
// that waited for a message may all get one. What more could
// do has to wait anyway: better where it can be seen how long it waits, and where it does
// not hold up those who bring the messages in and the answers out.
const most = 1024

// more has another goroutine receive, if the crew may have another one. If not, the next
// that has handled its message receives again: nobody is made who would only wait for that.
func (c *crew) more() {
	if c.busy.Load()-c.asleep.Load() >= most {
		return
	}
	select {
	case c.slots <- struct{}{}:
		c.done.Go(c.serve)
	default:
	}
}

// serve receives and handles until there is nothing to receive any more, or enough
// others wait for it.
func (c *crew) serve() {
	defer func() { <-c.slots }()
	for c.one() && c.idle.Load() < spare {
	}
}

// one takes one message, of those that wait the first, handles it and reports whether
// to go on.
func (c *crew) one() bool {
	e, waited := c.guest()
	var err error
	if !waited {
		e.msg, err = c.receive()
	}
	c.busy.Add(1)
	defer c.busy.Add(-1)
	if !waited && c.idle.Add(-1) == 0 && err == nil {
		c.tide.begin()
		c.more()
	}
	switch {
	case err != nil:
		return c.goesOn(err)
	case waited:
		c.more()
	default:
		e.at = c.arrived()
	}
	if c.bytes.Acquire(c.ctx, int64(len(e.msg.Data))) != nil {
		return false // it stops; the shim asks somebody else
	}
	defer c.bytes.Release(int64(len(e.msg.Data)))
	if c.handle(c, e) {
		c.judged.Add(1)
	}
	return true
}

// receive waits for the next message.
func (c *crew) receive() (*nats.Msg, error) {
	m, err := c.sub.NextMsgWithContext(c.ctx)
	if err == nil || errors.Is(err, nats.ErrNoResponders) {
		c.taken.Add(1)
	}
	return m, err
}

// goesOn says why no message was received, and reports whether others may be.
func (c *crew) goesOn(err error) bool {
	switch {
	case errors.Is(err, nats.ErrSlowConsumer):
		c.log.Error("events were lost because more arrived than can wait; add brokers, or look for agents in a loop")
		return true
	case errors.Is(err, nats.ErrNoResponders):
		// Somebody sent an event that looks like the server's "nobody is there".
		c.log.Warn("cannot answer an event that has a NATS status instead of headers")
		return true
	case c.sub.IsValid() && c.ctx.Err() == nil:
		c.log.Error("this broker cannot receive events any more; restart it", "error", err)
	}
	return false
}

// waiting hears of calls that begin to wait for workers, and of those that go on:
// another goroutine may have what they do not need meanwhile.
func (c *crew) waiting(n int) {
	if c.asleep.Add(int32(n)); n > 0 && c.idle.Load() == 0 {
		c.more()
	}
}

// arrived is when the message that has just been taken had come, at the latest. Who
// took one before it may not have counted that yet, but is still among the idle: those
// are looked at first, so that it is taken for a later one rather than for an earlier,
// but for none later than the last that came.
func (c *crew) arrived() time.Time {
	idle := int64(c.idle.Load())
	now := time.Now()
	at := c.tide.arrived(idle+c.taken.Load(), now)
	if at.Equal(now) && c.tide.on.Load() {
		at = c.tide.arrived(c.last(), now)
	}
	return at
}

// last is how many messages have come, or a few more: one that is taken while this counts
// is counted twice, unless it is seen that some are.
func (c *crew) last() (n int64) {
	for range 4 {
		before, berr := c.sub.Delivered()
		pending, _, perr := c.sub.Pending()
		after, err := c.sub.Delivered()
		if errors.Join(berr, perr, err) != nil {
			return math.MaxInt64 // the subscription is closed
		}
		if n = after + int64(pending); before == after {
			break
		}
	}
	return n
}

// come is how many messages have come, at the most: those that were taken are counted
// first, so that one that is taken meanwhile is missing rather than counted twice.
func (c *crew) come() int64 {
	delivered, err := c.sub.Delivered()
	pending, _, perr := c.sub.Pending()
	if err != nil || perr != nil {
		return 0 // the subscription is closed
	}
	return delivered + int64(pending)
}

// waits reports whether messages wait, or would have to.
func (c *crew) waits() bool {
	if c.idle.Load() == 0 || c.lobby.open.Load() {
		return c.ctx.Err() == nil
	}
	pending, _, err := c.sub.Pending()
	return err == nil && pending > 0
}

// drain receives nothing new, and waits until what came has been handled.
func (c *crew) drain(ctx context.Context) error {
	if c.sub == nil {
		return nil // it never began
	}
	if err := c.sub.Drain(); err != nil && c.sub.IsValid() {
		return fmt.Errorf("draining events: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.done.Wait()
		c.tide.end()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d calls were still under way: %w", c.busy.Load(), context.Cause(ctx))
	}
}
