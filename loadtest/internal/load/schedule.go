package load

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// near is the remaining time from which on the schedule waits precisely, because timers
	// may be a millisecond late.
	near = 2 * time.Millisecond
	// nap is how long a precise wait cannot be interrupted.
	nap = 500 * time.Microsecond
)

// A Task runs when it is due. sent is false if too many tasks were running to start it. It
// is then called only to count that, and must return at once.
type Task func(due time.Time, sent bool)

// A Schedule starts tasks when they are due, each in its own goroutine. It is safe for
// concurrent use.
type Schedule struct {
	// Most limits the number of running tasks; 0: no task starts.
	Most int64
	// Precise makes it wait with system calls, not timers.
	Precise bool

	underWay atomic.Int64
	work     sync.WaitGroup
	wake     chan struct{}

	mu    sync.Mutex // guards what follows
	tasks queue
}

// NewSchedule returns an empty schedule.
func NewSchedule(most int64, precise bool) *Schedule {
	return &Schedule{Most: most, Precise: precise, wake: make(chan struct{}, 1)}
}

// Add schedules a task for a moment. If that is past, the task runs at once.
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

// Left returns how many tasks wait or run.
func (s *Schedule) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tasks) + int(s.underWay.Load())
}

// UnderWay returns how many tasks run.
func (s *Schedule) UnderWay() int64 { return s.underWay.Load() }

// Run starts tasks until ctx ends, and waits for those that it started. Tasks that were due
// by then and were not started are called with sent false, so that they are counted.
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

// start starts all due tasks, up to the limit of running ones, and returns when the next
// task is due.
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

// sleep waits for the next moment, or until that may have changed.
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
