package aggregator

import (
	"fmt"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	// stillFor is for how long nothing was done by a process that stood still: less
	// is a machine that does much else.
	stillFor = time.Second
	// wakeFor is how long it takes after that until all is taken that came meanwhile.
	wakeFor = time.Second
	// refuseIn is when a request that changes something is refused at the latest after
	// it was made: who asks is promised to hear within 10 s.
	refuseIn = 9 * time.Second
)

// A standstill is a while in which this process did not run: it was stopped, or its
// machine was. What it takes right after that may have come at any moment of it, so that
// who asked may have waited for long.
type standstill struct {
	mu          sync.Mutex // guards what follows
	alive       time.Time  // when the process was seen to run last
	from, until time.Time  // the last standstill
}

// tick notes that the process runs. It is called all the time.
func (s *standstill) tick(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(now)
}

// note is tick with the lock held.
func (s *standstill) note(now time.Time) {
	if !s.alive.IsZero() && now.Sub(s.alive) > stillFor {
		if s.until.IsZero() || s.alive.Sub(s.until) >= wakeFor { // else what came in the one before may still wait
			s.from = s.alive
		}
		s.until = now
	}
	s.alive = now
}

// came is when what is taken now may have come at the earliest.
func (s *standstill) came(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(now)
	if !s.until.IsZero() && now.Sub(s.until) < wakeFor {
		return s.from
	}
	return now
}

// due is when a request is given up that is taken now, and an error if that is over.
func (a *Aggregator) due(changes bool, now time.Time) (time.Time, error) {
	until := now.Add(verbTime)
	if !changes {
		return until, nil
	}
	came := a.control.still.came(now)
	last := came.Add(refuseIn)
	switch {
	case !now.Before(last):
		return last, unavailable(fmt.Sprintf("this broker was stalled for %s, and the request may be that old; nothing changed, try again", schema.Duration(now.Sub(came).Round(time.Second))))
	case last.Before(until):
		return last, nil
	}
	return until, nil
}
