package intake

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// A large event uses a processor for long, so the bytes of large events that one agent has under
// way are bounded. Others wait for half of their time, and their shims get heartbeats. The same
// applies to all events that come faster than they can be judged. Then the failure policies of
// their hooks answer.

const (
	// minLarge is from how many bytes on an event is a large one.
	minLarge = 64 << 10
	// mostLarge is how many bytes of large events one agent has under way, or one event. To read
	// them takes processors that freezes, beats and other agents need.
	mostLarge = maxUnderWay / 64
	// mostLargeWaiting is how many bytes of them wait, of one agent, and allLargeWaiting of all.
	mostLargeWaiting = 16 * mostLarge
	allLargeWaiting  = maxUnderWay / 2
)

// largeEvents are the large events that wait or are under way.
type largeEvents struct {
	mu      sync.Mutex // guards the following fields
	of      map[string]*agentLarge
	waiting int // bytes
}

// agentLarge are those of one agent.
type agentLarge struct {
	name     string
	underWay *semaphore.Weighted // bounds their bytes
	waiting  int                 // bytes
	events   int                 // that wait or are under way
}

// A largeEvent is one event's share in the counts; the zero largeEvent has none.
type largeEvent struct {
	of       *agentLarge
	waiting  int   // its bytes while it waits
	underWay int64 // its part of what its agent has under way
}

// shareOf returns how many bytes an event of a size takes of its agent's bound.
func shareOf(size int) int64 { return int64(min(size, mostLarge)) }

// agent returns the large events of an agent. The caller holds the lock.
func (l *largeEvents) agent(name string) *agentLarge {
	if of := l.of[name]; of != nil {
		return of
	}
	return &agentLarge{name: name, underWay: semaphore.NewWeighted(mostLarge)}
}

// add counts an event of an agent, whose bytes begin or cease to wait. The caller holds the lock.
func (l *largeEvents) add(e *largeEvent, of *agentLarge, waiting int) {
	if e.of == nil {
		e.of = of
		of.events++
		l.of[of.name] = of
	}
	e.waiting += waiting
	of.waiting += waiting
	l.waiting += waiting
}

// begin puts a large event under way, or reports false if it has to wait.
func (l *largeEvents) begin(e *largeEvent, agent string, size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.agent(agent)
	if !of.underWay.TryAcquire(shareOf(size)) {
		return false
	}
	e.underWay = shareOf(size)
	l.add(e, of, -e.waiting)
	return true
}

// queue counts a large event among those that wait, and reports false if they take too much.
func (l *largeEvents) queue(e *largeEvent, agent string, size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.waiting > 0 {
		return true
	}
	of := l.agent(agent)
	if of.waiting+size > mostLargeWaiting || l.waiting+size > allLargeWaiting {
		return false
	}
	l.add(e, of, size)
	return true
}

// wait waits until a queued event is under way, and reports false if ctx ended first.
func (l *largeEvents) wait(ctx context.Context, e *largeEvent) bool {
	share := shareOf(e.waiting)
	if e.of.underWay.Acquire(ctx, share) != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.underWay = share
	l.add(e, e.of, -e.waiting)
	return true
}

// leave reverses begin and queue.
func (l *largeEvents) leave(e *largeEvent) {
	if e.of == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(e, e.of, -e.waiting)
	if e.underWay > 0 {
		e.of.underWay.Release(e.underWay)
	}
	if e.of.events--; e.of.events == 0 {
		delete(l.of, e.of.name)
	}
	*e = largeEvent{}
}
