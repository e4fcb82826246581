package dispatch

import "time"

const (
	// burst is the longest time that a queue may stay non-empty and not count as an
	// overload. In an overload, calls wait for at most soon, so that the queue is short
	// soon after it ends.
	burst = 5 * time.Second
	soon  = 500 * time.Millisecond
	// few is how many calls may wait even in an overload: they keep slow workers busy.
	few = 8
	// calm is a time without waiting calls after which a new burst begins.
	calm = time.Second
	// paceOver and paceLeast are the minimum time and number of finished calls over which
	// the pace is measured.
	paceOver  = 500 * time.Millisecond
	paceLeast = 4
)

// A Rush tells a burst from an overload. From the pace at which work is done and the
// queue's length it decides which call may wait. In a burst, a call may wait if it will
// be done in half of its time; in an overload, only if it will be done soon. The zero
// Rush is ready to use. It has no lock.
type Rush struct {
	before, after, last done
	waited              time.Time // when a call last waited
	since               time.Time // since when calls wait without a pause
}

// done is how much work was done at a time.
type done struct {
	at time.Time
	n  int64
}

// Look records how much work was done by now, and how many calls wait.
func (r *Rush) Look(now time.Time, n int64, waiting int) {
	if waiting == 0 || now.Sub(r.last.at) > calm {
		r.before, r.after = done{now, n}, done{now, n} // workers were idle, so this time does not show their pace
	}
	r.last = done{now, n}
	if now.Sub(r.after.at) >= paceOver && n-r.after.n >= paceLeast {
		r.before, r.after = r.after, r.last
	}
	if now.Sub(r.waited) > calm {
		r.since = now
	}
	if waiting > 0 {
		r.waited = now
	}
}

// InTime reports whether a call that has waited for waited will be done soon enough. left
// is its time when it arrived, ahead the number of calls before it.
func (r *Rush) InTime(waited, left time.Duration, ahead int) bool {
	wait, known := r.over(ahead + 1)
	if overload := r.last.at.Sub(r.since) > burst && ahead >= few; overload {
		if !known {
			return false // nothing moves
		}
		left = min(left, 2*soon)
	}
	return waited+wait <= left/2
}

// over returns how long that many calls take; known is false if the pace is unknown.
func (r *Rush) over(calls int) (d time.Duration, known bool) {
	n := r.last.n - r.before.n
	if n < paceLeast {
		return 0, false
	}
	return time.Duration(float64(r.last.at.Sub(r.before.at)) / float64(n) * float64(calls)), true
}
