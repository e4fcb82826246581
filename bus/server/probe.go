package server

import (
	"cmp"
	"errors"
	"sync"
	"time"
)

const (
	// hangsAfter is how long the NATS server may take to report its state.
	hangsAfter = 2 * time.Second
	// mendsWithin is how long a restart of JetStream may take. It reads all streams.
	mendsWithin = 5 * time.Minute
)

// errHangs is the error of a NATS server that does not return from one of its functions.
var errHangs = errors.New("JetStream in this process hangs since a write failed, and only a restart of the broker helps")

// A probe calls a function of the NATS server that may never return. The server deadlocks if a
// write fails while it purges a subject. Only one call is in progress.
type probe[T any] struct {
	within time.Duration // 0: hangsAfter

	mu     sync.Mutex
	result chan T // of the call in progress; nil: no call is in progress
}

// run calls f, and reports whether it returned in time. A call that was late makes further ones
// fail at once until it returns. Its result is dropped.
func (p *probe[T]) run(f func() T) (v T, inTime bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.result != nil {
		select {
		case <-p.result:
		default:
			return v, false
		}
	}
	result := make(chan T, 1)
	p.result = result
	go func() { result <- f() }()
	late := time.NewTimer(cmp.Or(p.within, hangsAfter))
	defer late.Stop()
	select {
	case v = <-result:
		p.result = nil
		return v, true
	case <-late.C:
		return v, false
	}
}
