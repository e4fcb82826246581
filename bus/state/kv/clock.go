package kv

import (
	"sync"
	"time"
)

// sampleFor is how long a sample with a short round trip is preferred to newer
// ones with longer ones: the speeds of two clocks differ a little.
const sampleFor = 5 * time.Minute

// A Clock tells the server's time as it is seen from here, so that the age of
// what the server stored is never computed from the clocks of two machines. The
// zero Clock tells this machine's time until it has heard of the server's.
type Clock struct {
	mu sync.RWMutex // guards best
	// best is the sample that the time is told by.
	best sample
}

// sample says what the server's clock showed at a moment of ours.
type sample struct {
	here, there time.Time
	trip        time.Duration
}

// Heard notes what the server's clock showed in an answer to a request that was
// sent at that time of ours and took trip; a zero time is nothing. Of several
// samples the one with the smallest round trip is believed.
func (c *Clock) Heard(there, sent time.Time, trip time.Duration) {
	if there.IsZero() {
		return
	}
	s := sample{here: sent.Add(trip / 2), there: there, trip: trip}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.best.there.IsZero() || s.trip <= c.best.trip || s.here.Sub(c.best.here) > sampleFor || c.best.denies(s) {
		c.best = s
	}
}

// denies reports whether no clock can have shown both: another server leads, or
// somebody set the server's clock.
func (b sample) denies(s sample) bool {
	apart := s.there.Sub(b.at(s.here)).Abs()
	return apart > (b.trip+s.trip)/2+100*time.Millisecond
}

// at is the server's time when ours was t.
func (b sample) at(t time.Time) time.Time { return b.there.Add(t.Sub(b.here)) }

// Now is the server's time.
func (c *Clock) Now() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.best.there.IsZero() {
		return time.Now()
	}
	return c.best.at(time.Now())
}

// Age is how long ago the server's clock showed t; never less than 0.
func (c *Clock) Age(t time.Time) time.Duration { return max(c.Now().Sub(t), 0) }
