package kv

import (
	"sync"
	"time"
)

// sampleFor is how long a sample with a short round trip is preferred to newer ones with longer ones.
// It is limited because the speeds of two clocks differ.
const sampleFor = 5 * time.Minute

// A Clock estimates the server's time, so that ages of stored data never compare the clocks of two
// machines. The zero Clock returns this machine's time until its first sample.
type Clock struct {
	mu sync.RWMutex // guards best
	// best is the sample that is used.
	best sample
}

// A sample is the server's time at a local time.
type sample struct {
	here, there time.Time
	trip        time.Duration
}

// Heard adds the server's time in an answer, with the local time of the request and its round trip. A
// zero time is ignored. The sample with the shortest round trip is used.
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

// denies reports whether the samples cannot be of one clock: another server leads now, or the server's
// clock was set.
func (b sample) denies(s sample) bool {
	apart := s.there.Sub(b.at(s.here)).Abs()
	return apart > (b.trip+s.trip)/2+100*time.Millisecond
}

// at returns the server's time at a local time.
func (b sample) at(t time.Time) time.Time { return b.there.Add(t.Sub(b.here)) }

// Now returns the server's time.
func (c *Clock) Now() time.Time {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.best.there.IsZero() {
		return time.Now()
	}
	return c.best.at(time.Now())
}

// Age returns how long ago t was by the server's clock, at least 0.
func (c *Clock) Age(t time.Time) time.Duration { return max(c.Now().Sub(t), 0) }
