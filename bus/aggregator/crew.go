package aggregator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
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
	ctx    context.Context //nolint:containedctx // the crew's life
	slots  chan struct{}   // bounds the goroutines
	idle   atomic.Int32    // how many of them wait for a message
	busy   atomic.Int32    // how many handle one
	done   sync.WaitGroup
}

// start begins to receive from sub.
func (c *crew) start() { c.done.Go(c.serve) }

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
	case err != nil:
		return false
	}
	c.busy.Add(1)
	defer c.busy.Add(-1)
	c.handle(m)
	return true
}

// wait waits until everything received has been handled. Drain the
// subscription first.
func (c *crew) wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.done.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
