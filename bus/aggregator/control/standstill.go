package control

import (
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	// stillFor is the shortest gap that counts as a standstill. A shorter one is a busy machine.
	stillFor = time.Second
	// wakeFor is how long it then takes to receive everything that arrived during the standstill.
	wakeFor = time.Second
	// refuseIn is the age at which the broker refuses a request that changes something. The client
	// expects an answer within 10 s.
	refuseIn = 9 * time.Second
)

// A standstill is a period in which this process did not run, because it or its machine was
// stopped. A request read right after it may have arrived at any moment of it, so the client may
// have waited long.
type standstill struct {
	mu          sync.Mutex // guards the following fields
	alive       time.Time  // when the process was seen to run last
	from, until time.Time  // the last standstill
}

// tick notes that the process runs. It is called all the time.
func (s *standstill) tick(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(now)
}

// note is tick for a caller that holds the lock.
func (s *standstill) note(now time.Time) {
	if !s.alive.IsZero() && now.Sub(s.alive) > stillFor {
		if s.until.IsZero() || s.alive.Sub(s.until) >= wakeFor { // otherwise requests from the earlier standstill may still wait
			s.from = s.alive
		}
		s.until = now
	}
	s.alive = now
}

// came returns the earliest time at which a request read now may have arrived.
func (s *standstill) came(now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(now)
	if !s.until.IsZero() && now.Sub(s.until) < wakeFor {
		return s.from
	}
	return now
}

// due returns the deadline of a request that is read now, and an error if it is over.
func (c *Control) due(changes bool, now time.Time) (time.Time, error) {
	until := now.Add(verbTime)
	if !changes {
		return until, nil
	}
	came := c.still.came(now)
	last := came.Add(refuseIn)
	switch {
	case !now.Before(last):
		return last, unavailable("this broker was stalled for %s, and the request may be that old; nothing changed, try again", schema.Duration(now.Sub(came).Round(time.Second)))
	case last.Before(until):
		return last, nil
	}
	return until, nil
}
