package aggregator

import (
	"context"
	"sync"
	"time"
)

// A lifetime is how long an aggregator works, and the goroutines that end with it.
type lifetime struct {
	started time.Time
	ctx     context.Context //nolint:containedctx // the life of the calls under way, not of one request
	stop    context.CancelFunc
	done    sync.WaitGroup
	// ending guards that no goroutine is added to done while end waits: calls that were given up
	// still run.
	ending sync.Mutex
}

func (l *lifetime) start() {
	l.started = time.Now()
	l.ctx, l.stop = context.WithCancel(context.Background())
}

// beside runs a function on a goroutine, unless the aggregator has stopped.
func (l *lifetime) beside(do func()) {
	l.ending.Lock()
	defer l.ending.Unlock()
	if l.ctx.Err() == nil {
		l.done.Go(do)
	}
}

// end stops all goroutines and waits for them.
func (l *lifetime) end() {
	l.ending.Lock()
	l.stop()
	l.ending.Unlock()
	l.done.Wait()
}
