package aggregator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"
)

// spare is how many goroutines of a crew wait for the next event; more are
// made when they are needed and end when they are not.
const spare = 64

// crew receives the messages of one subscription on many goroutines: whoever
// receives a message also handles it, so that none is handed on, and somebody
// else is always there to receive the next. The goroutines stay, because a
// call's stack is deep and growing it anew costs a good part of a short call.
type crew struct {
	sub    *nats.Subscription
	handle func(*nats.Msg)
	log    *slog.Logger
	ctx    context.Context     //nolint:containedctx // the crew's life
	slots  chan struct{}       // bounds the goroutines
	bytes  *semaphore.Weighted // bounds what the calls under way hold
	idle   atomic.Int32        // how many of them wait for a message
	busy   atomic.Int32        // how many handle one
	done   sync.WaitGroup
}

// newCrew makes a crew of at most size goroutines.
func newCrew(ctx context.Context, size int, handle func(*nats.Msg), log *slog.Logger) *crew {
	return &crew{handle: handle, log: log, ctx: ctx, slots: make(chan struct{}, size), bytes: semaphore.NewWeighted(maxUnderWay)}
}

// maxUnderWay bounds the events that are being judged, in bytes. Each may be
// copied once with a rewrite in it, and once for a worker.
const maxUnderWay = 128 << 20

// maxWaiting bounds the events that wait here, in bytes.
const maxWaiting = 256 << 20

// start begins to receive from sub.
func (c *crew) start(sub *nats.Subscription) error {
	if err := sub.SetPendingLimits(-1, maxWaiting); err != nil {
		return fmt.Errorf("bounding the events that wait: %w", err)
	}
	c.sub = sub
	c.done.Go(c.serve)
	return nil
}

// serve receives and handles until there is nothing to receive any more.
func (c *crew) serve() {
	for {
		c.slots <- struct{}{}
		more := c.one()
		<-c.slots
		if !more || c.idle.Load() >= spare {
			return
		}
	}
}

// one receives and handles one message and reports whether to go on.
func (c *crew) one() bool {
	c.idle.Add(1)
	m, err := c.sub.NextMsgWithContext(c.ctx)
	if c.idle.Add(-1) == 0 && err == nil {
		c.done.Go(c.serve)
	}
	switch {
	case errors.Is(err, nats.ErrSlowConsumer):
		c.log.Error("events were lost: more came than can wait; add brokers, or look for agents that run away")
		return true
	case errors.Is(err, nats.ErrNoResponders):
		// Somebody sent an event that looks like the server's "nobody is there".
		c.log.Warn("an event that names a status instead of headers can not be answered")
		return true
	case err != nil:
		if c.sub.IsValid() && c.ctx.Err() == nil {
			c.log.Error("no events can be taken any more; restart the broker", "error", err)
		}
		return false
	}
	if c.bytes.Acquire(c.ctx, int64(len(m.Data))) != nil {
		return false // it stops; the shim asks somebody else
	}
	defer c.bytes.Release(int64(len(m.Data)))
	c.busy.Add(1)
	defer c.busy.Add(-1)
	c.handle(m)
	return true
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
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d calls were still under way: %w", c.busy.Load(), context.Cause(ctx))
	}
}
