package dispatch

import "time"

const (
	// burst is for how long more may come than can be done. In an overload that lasts
	// longer nobody waits for longer than soon, so that all is as before soon after it.
	burst = 5 * time.Second
	soon  = 500 * time.Millisecond
	// few is how many may wait all the same: they keep those busy who work slowly.
	few = 8
	// calm is after how long in which nobody waited a rush is another one.
	calm = time.Second
	// paceOver is over how long at least, and paceLeast over how much that was done, it
	// is looked how fast work is done.
	paceOver  = 500 * time.Millisecond
	paceLeast = 4
)

// A Rush is that more comes than can be done at once: it tells who can wait from whom
// waiting would be in vain, by how fast work is done and how much is ahead. While it is a
// burst whoever will be done in half of its time can wait; in an overload, which does not
// end by waiting, only who will be soon. The zero Rush is none. It has no lock.
type Rush struct {
	before, after, last done
	waited              time.Time // when somebody waited last
	since               time.Time // since when, without a pause
}

// done is how much work was done by a time.
type done struct {
	at time.Time
	n  int64
}

// Look notes that by now so much work was done, and how many wait.
func (r *Rush) Look(now time.Time, n int64, waiting int) {
	if waiting == 0 || now.Sub(r.last.at) > calm {
		r.before, r.after = done{now, n}, done{now, n} // what was done was not all that could be
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

// InTime reports whether one that has waited for so long, with so many ahead of it, will
// be done soon enough, if it had so much time when it came.
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

// over is how long so many take; known: that can be said.
func (r *Rush) over(calls int) (d time.Duration, known bool) {
	n := r.last.n - r.before.n
	if n < paceLeast {
		return 0, false
	}
	return time.Duration(float64(r.last.at.Sub(r.before.at)) / float64(n) * float64(calls)), true
}
