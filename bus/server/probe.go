package server

import (
	"errors"
	"sync"
	"time"
)

// hangsAfter is how long a function of the NATS server may take.
const hangsAfter = 2 * time.Second

// errHangs is the error of a NATS server that does not return from one of its functions.
var errHangs = errors.New("JetStream in this process hangs since a write failed, and only a restart of the broker helps")

// A probe calls a function of the NATS server that may never return. The server deadlocks if a
// write fails while it purges a subject. Only one call is in progress.
type probe[T any] struct {
	mu     sync.Mutex
	result chan T // of the call in progress; nil: there is none
	until  time.Time
}

// run calls f, or waits for the call in progress. It reports whether the call returned in time.
func (p *probe[T]) run(f func() T) (T, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.result == nil {
		result := make(chan T, 1)
		p.result, p.until = result, time.Now().Add(hangsAfter)
		go func() { result <- f() }()
	}
	late := time.NewTimer(time.Until(p.until))
	defer late.Stop()
	select {
	case v := <-p.result:
		p.result = nil
		return v, true
	case <-late.C:
		var none T
		return none, false
	}
}
