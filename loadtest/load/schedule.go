package load

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// near is from when on a moment is waited for precisely; timers may be a
	// millisecond late.
	near = 2 * time.Millisecond
	// nap is how long the schedule cannot be woken while it does so.
	nap = 500 * time.Microsecond
)

// A Task is done when it is due. Sent is false if so much was under way that it
// could not be started: then it is called all the same, to count that, and must
// return at once.
type Task func(due time.Time, sent bool)

// A Schedule starts tasks when they are due, each in a goroutine of its own. It is
// safe for many goroutines.
type Schedule struct {
	// Most bounds how many tasks are under way; 0: nothing is started.
	Most int64
	// Precise has it wait for moments by the system's own clock, and not by timers.
	Precise bool

	underWay atomic.Int64
	work     sync.WaitGroup
	wake     chan struct{}

	mu    sync.Mutex // guards what follows
	tasks queue
}

// NewSchedule is a schedule with nothing to do.
func NewSchedule(most int64, precise bool) *Schedule {
	return &Schedule{Most: most, Precise: precise, wake: make(chan struct{}, 1)}
}

// Add has a task done at a moment; one that is past is done at once.
func (s *Schedule) Add(due time.Time, do Task) {
	s.mu.Lock()
	heap.Push(&s.tasks, task{due: due, do: do})
	first := s.tasks[0].due.Equal(due)
	s.mu.Unlock()
	if first {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Left is how many tasks wait or are under way.
func (s *Schedule) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tasks) + int(s.underWay.Load())
}

// UnderWay is how many tasks were started and are not over.
func (s *Schedule) UnderWay() int64 { return s.underWay.Load() }

// Run starts tasks until ctx ends, and waits for those that it started. What was due
// by then and was not started is not sent: it is counted, and not left out.
func (s *Schedule) Run(ctx context.Context) {
	defer s.work.Wait()
	release := precision(s.Precise)
	defer release()
	for ctx.Err() == nil {
		next, some := s.start(time.Now(), s.Most)
		s.sleep(ctx, next, some)
	}
	s.start(time.Now(), 0)
}

// start starts all that is due, as long as fewer than most are under way, and says
// when the next task is.
func (s *Schedule) start(now time.Time, most int64) (next time.Time, some bool) {
	for {
		s.mu.Lock()
		if len(s.tasks) == 0 || s.tasks[0].due.After(now) {
			if some = len(s.tasks) > 0; some {
				next = s.tasks[0].due
			}
			s.mu.Unlock()
			return next, some
		}
		t := heap.Pop(&s.tasks).(task)
		sent := s.underWay.Load() < most
		if sent {
			s.underWay.Add(1)
		}
		s.mu.Unlock()
		if !sent {
			t.do(t.due, false)
			continue
		}
		s.work.Go(func() {
			defer s.underWay.Add(-1)
			t.do(t.due, true)
		})
	}
}

// sleep waits for the next moment, or until it may be another one.
func (s *Schedule) sleep(ctx context.Context, next time.Time, some bool) {
	var timer <-chan time.Time
	if some {
		left := time.Until(next)
		if s.Precise && left < near {
			doze(min(left, nap))
			return
		}
		if s.Precise {
			left -= near / 2
		}
		t := time.NewTimer(left)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-timer:
	case <-s.wake:
	case <-ctx.Done():
	}
}

// task is one entry of the queue.
type task struct {
	due time.Time
	do  Task
}

// queue is a heap, the next task first.
type queue []task

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }

// Push is for package heap.
func (q *queue) Push(t any) { *q = append(*q, t.(task)) }

// Pop is for package heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = task{}
	*q = (*q)[:last]
	return t
}
