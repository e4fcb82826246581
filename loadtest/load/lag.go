package load

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// lagEvery is how often the lag is looked at, and lagKept how many looks are kept.
	lagEvery = 10 * time.Millisecond
	lagKept  = 200
)

// A Lag knows how late this process itself has been of late: by how much a timer
// of its own was. What comes late to a process that did not run is not the fault of
// who sent it.
type Lag struct {
	looks [lagKept]atomic.Int64
	// due is when the look under way was, in nanoseconds of the clock; 0: there is none.
	due atomic.Int64
}

// Run looks until ctx ends.
func (l *Lag) Run(ctx context.Context) {
	t := time.NewTimer(lagEvery)
	defer t.Stop()
	for i := 0; ; i++ {
		due := time.Now().Add(lagEvery)
		l.due.Store(due.UnixNano())
		t.Reset(lagEvery)
		select {
		case <-t.C:
			// A timer's goroutine is first in line; those of answers are last.
			runtime.Gosched()
			l.looks[i%lagKept].Store(int64(time.Since(due)))
		case <-ctx.Done():
			return
		}
	}
}

// Most is how late it was at most in the last two seconds and a little.
func (l *Lag) Most() time.Duration {
	most := int64(0)
	if due := l.due.Load(); due > 0 {
		most = time.Now().UnixNano() - due // it may be late still
	}
	for i := range l.looks {
		most = max(most, l.looks[i].Load())
	}
	return time.Duration(most)
}
