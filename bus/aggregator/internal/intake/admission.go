package intake

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/hookfabric/hookfabric/bus/dispatch"
)

// Events that cannot be handled at once wait in the order in which they came. A shim assumes that
// an aggregator is lost if it sends nothing. An event that has waited for admitAfter is therefore
// admitted: from then on its shim gets heartbeats. The broker does not admit an event that it
// cannot judge in time, and answers it at once.

const (
	// admitAfter is how long an event waits before it is decided about: soon enough for the
	// first heartbeat.
	admitAfter = 120 * time.Millisecond
	// admitEvery is the interval at which the queue is checked while events wait, and the limit for
	// one check.
	admitEvery = 20 * time.Millisecond
	// expireEvery is the interval at which admitted events are checked for having waited too long.
	expireEvery = 100 * time.Millisecond
	// admittedShare is the part of the queue that admitted events may fill. arrivalSize is how many
	// bytes one takes in addition to its body.
	admittedShare = 2
	arrivalSize   = 1 << 10
	// maxAwake bounds the calls that need a processor at the same time. More would delay the
	// goroutines that receive messages and send answers.
	maxAwake = 1024
	// maxUnderWay bounds the bytes of the events under way. Each may be copied once with a
	// rewrite in it, and once for a worker.
	maxUnderWay = 128 << 20
)

// The bytes of the events that wait are bounded by a part of the memory limit of the process.
// There are two queues, and an event that waits takes three times its bytes.
const (
	waitingShare = 16
	minWaiting   = 32 << 20
	maxWaiting   = 256 << 20
)

// An admissionQueue bounds the events under way, and holds the others.
type admissionQueue struct {
	size     int                 // most events under way
	maxBytes int                 // most bytes of events that wait
	bytes    *semaphore.Weighted // of events under way
	asleep   atomic.Int32        // events under way that wait for workers
	// ready reports whether events may be answered; nil: never.
	ready func() bool
	// decide reports whether an event is admitted at a time, with the events that are already
	// admitted.
	decide func(e *Arrival, now time.Time) (stays bool)

	mu       sync.Mutex // guards the following fields
	busy     int        // events under way
	judged   int64      // events that were judged
	watched  bool       // a goroutine watches the queue
	paced    bool       // it has done so since events began to wait
	arrived  fifo       // events that were not decided about yet; all of them came after those that are
	admitted fifo
	rush     dispatch.Rush
	expired  time.Time // when events were last looked at that have waited for too long
}

func newAdmissionQueue(size int) *admissionQueue {
	most := int(min(max(debug.SetMemoryLimit(-1)/waitingShare, minWaiting), maxWaiting))
	return &admissionQueue{size: size, maxBytes: most, bytes: semaphore.NewWeighted(maxUnderWay)}
}

// add adds an event, and returns the next one that is to be handled now; nil: there is no room for
// more under way. If begun, the caller has the queue looked at. An event is lost if not ok.
func (q *admissionQueue) add(e *Arrival) (next *Arrival, begun, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ok = q.arrived.bytes+q.admitted.bytes+e.size() <= q.maxBytes; ok {
		q.arrived.push(e)
	}
	next = q.take()
	if begun = !q.watched && q.waiting() > 0; begun {
		q.watched, q.paced = true, false
	}
	return next, begun, ok
}

// next returns the event that has waited longest, if it is to be handled now, and nil if not.
func (q *admissionQueue) next() *Arrival {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.take()
}

// take is next for a caller that holds the lock.
func (q *admissionQueue) take() *Arrival {
	from := &q.admitted
	if from.len() == 0 {
		from = &q.arrived
	}
	if from.len() == 0 || q.busy >= q.size || q.busy-int(q.asleep.Load()) >= maxAwake {
		return nil
	}
	if !q.bytes.TryAcquire(int64(len(from.front().Msg.Data))) {
		return nil
	}
	q.busy++
	return from.pop()
}

// ended ends an event that was under way, and returns what next does.
func (q *admissionQueue) ended(e *Arrival) *Arrival {
	q.bytes.Release(int64(len(e.Msg.Data)))
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	if e.Judged {
		q.judged++
	}
	return q.take()
}

// admit decides about the events that have waited for a while. It returns those that are to be
// answered at once, and reports whether any event waits.
func (q *admissionQueue) admit(now time.Time) (late []*Arrival, more bool) {
	ready := q.ready != nil && q.ready()
	q.mu.Lock()
	defer q.mu.Unlock()
	if ready {
		q.look(now)
		late = q.expire(now)
		for began := time.Now(); q.arrived.len() > 0 && now.Sub(q.arrived.front().At) >= admitAfter && time.Since(began) < admitEvery; {
			e := q.arrived.pop()
			if q.decide(e, now) {
				q.admitted.push(e)
			} else {
				late = append(late, e)
			}
		}
	}
	q.watched = q.waiting() > 0
	return late, q.watched
}

// look notes how many events were judged, and how many wait. Before its first look, events may have
// been judged more slowly than they can be. The lock is held, as in the following methods.
func (q *admissionQueue) look(now time.Time) {
	waiting := q.waiting()
	if !q.paced {
		q.paced, waiting = true, 0
	}
	q.rush.Look(now, q.judged, waiting)
}

// expire takes out the admitted events that have waited for too long.
func (q *admissionQueue) expire(now time.Time) []*Arrival {
	if now.Sub(q.expired) < expireEvery {
		return nil
	}
	q.expired = now
	return q.admitted.remove(func(e *Arrival) bool {
		e.late = !now.Before(e.until)
		return e.late
	})
}

// inTime reports whether an event that arrived at a time, with the time that it has left, will be
// judged before its deadline if it is admitted.
func (q *admissionQueue) inTime(at, now time.Time, left time.Duration) bool {
	return q.rush.InTime(now.Sub(at), left, q.admitted.len())
}

// full reports whether there is no room to admit an event.
func (q *admissionQueue) full(e *Arrival) bool {
	return q.admitted.bytes+e.size() > q.maxBytes/admittedShare
}

func (q *admissionQueue) waiting() int { return q.admitted.len() + q.arrived.len() }

// underWay returns how many events are.
func (q *admissionQueue) underWay() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy
}

// held returns how many events wait.
func (q *admissionQueue) held() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting()
}

// A fifo is events in the order in which they came, and their size.
type fifo struct {
	events []*Arrival
	first  int // the index of the oldest
	bytes  int
}

func (f *fifo) len() int        { return len(f.events) - f.first }
func (f *fifo) front() *Arrival { return f.events[f.first] }

func (f *fifo) push(e *Arrival) {
	f.events = append(f.events, e)
	f.bytes += e.size()
}

func (f *fifo) pop() *Arrival {
	e := f.events[f.first]
	f.events[f.first] = nil
	f.bytes -= e.size()
	if f.first++; 2*f.first > len(f.events) && (f.len() == 0 || f.first >= 1024) {
		f.events, f.first = slices.Delete(f.events, 0, f.first), 0
	}
	return e
}

// remove takes out the events for which a condition holds.
func (f *fifo) remove(holds func(*Arrival) bool) (some []*Arrival) {
	f.events = slices.DeleteFunc(f.events[f.first:], func(e *Arrival) bool {
		if !holds(e) {
			return false
		}
		f.bytes -= e.size()
		some = append(some, e)
		return true
	})
	f.first = 0
	return some
}

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
