package load

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// lagEvery is the interval between measurements of the lag, and lagKept how many of
	// them are kept.
	lagEvery = 10 * time.Millisecond
	lagKept  = 200
)

// A Lag measures how late this process itself has been recently: by how much its own timer
// was late. If this process did not run, a late answer is not the sender's fault.
type Lag struct {
	looks [lagKept]atomic.Int64
	// due is the planned time of the current look, in nanoseconds of the clock; 0: no look
	// has begun.
	due atomic.Int64
}

// Run measures until ctx ends.
func (l *Lag) Run(ctx context.Context) {
	t := time.NewTimer(lagEvery)
	defer t.Stop()
	for i := 0; ; i++ {
		due := time.Now().Add(lagEvery)
		l.due.Store(due.UnixNano())
		t.Reset(lagEvery)
		select {
		case <-t.C:
			// A timer's goroutine runs first, and those of answers run last.
			runtime.Gosched()
			l.looks[i%lagKept].Store(int64(time.Since(due)))
		case <-ctx.Done():
			return
		}
	}
}

// Most returns the highest lag of the last two seconds and a little more.
func (l *Lag) Most() time.Duration {
	most := int64(0)
	if due := l.due.Load(); due > 0 {
		most = time.Now().UnixNano() - due // the timer may still be late
	}
	for i := range l.looks {
		most = max(most, l.looks[i].Load())
	}
	return time.Duration(most)
}
