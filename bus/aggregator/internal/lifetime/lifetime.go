// Package lifetime has the life of an aggregator: the context that ends with it, and the work that
// runs beside its calls.
package lifetime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	// storeBudget bounds how long a call waits for the stores. While they cannot be reached, agents
	// continue without injections.
	storeBudget = 100 * time.Millisecond
	// maxWrites bounds the writes that run in the background.
	maxWrites = 256
	// WriteTime bounds one write in the background.
	WriteTime = 10 * time.Second
)

// A Lifetime is how long an aggregator works, and the goroutines that end with it.
type Lifetime struct {
	Started time.Time

	ctx    context.Context //nolint:containedctx // the life of the calls under way, not of one request
	stop   context.CancelFunc
	log    *slog.Logger
	writes chan struct{} // held by each write in the background
	done   sync.WaitGroup
	// ending guards that no goroutine is added to done while End waits: calls that were given up
	// still run.
	ending sync.Mutex
}

// Start begins a lifetime.
func Start(log *slog.Logger) *Lifetime {
	ctx, stop := context.WithCancel(context.Background())
	return &Lifetime{Started: time.Now(), ctx: ctx, stop: stop, log: log, writes: make(chan struct{}, maxWrites)}
}

// Context ends when the aggregator stops.
func (l *Lifetime) Context() context.Context { return l.ctx }

// Go runs a function on a goroutine, unless the aggregator has stopped.
func (l *Lifetime) Go(do func()) {
	l.ending.Lock()
	defer l.ending.Unlock()
	if l.ctx.Err() == nil {
		l.done.Go(do)
	}
}

// Write runs a write in the background, unless too many wait already.
func (l *Lifetime) Write(do func(context.Context) error) {
	select {
	case l.writes <- struct{}{}:
	default:
		return
	}
	l.Go(func() {
		defer func() { <-l.writes }()
		ctx, cancel := context.WithTimeout(l.ctx, WriteTime)
		defer cancel()
		if err := do(ctx); err != nil {
			l.log.Warn("a change of an agent's state could not be stored", "error", err)
		}
	})
}

// TryWrite runs a write, and again in the background if it fails.
func (l *Lifetime) TryWrite(ctx context.Context, do func(context.Context) error) error {
	err := do(ctx)
	if err != nil {
		l.Write(do)
	}
	return err
}

// ForCall returns a context for a call's use of the stores. It ends early enough for the verdict to
// be sent before the call's deadline.
func (l *Lifetime) ForCall(deadline time.Time) (context.Context, context.CancelFunc) {
	left := time.Until(deadline)
	return context.WithTimeout(l.ctx, min(storeBudget, left-schema.Margin(left)))
}

// End stops all goroutines and waits for them.
func (l *Lifetime) End() {
	l.ending.Lock()
	l.stop()
	l.ending.Unlock()
	l.done.Wait()
}
