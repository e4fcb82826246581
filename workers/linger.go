package workers

import (
	"maps"
	"slices"
	"time"
)

const (
	// defaultLinger is how long a version that was active is held after it was replaced.
	// A call passes through several pools with the version that it started with, while
	// several changes may follow.
	defaultLinger = 2 * time.Minute
	// maxLingering limits the number of such versions.
	maxLingering = 32
)

// drop drops all versions except those to keep, and those that calls may still use.
func (w *Worker) drop() {
	next, now := maps.Clone(*w.versions.Load()), time.Now()
	var lingering []uint64
	for n, v := range next {
		switch {
		case slices.Contains(w.kept, n):
		case v.lingers(now, w.opt.Linger):
			lingering = append(lingering, n)
		default:
			delete(next, n)
		}
	}
	slices.Sort(lingering)
	for len(lingering) > maxLingering {
		delete(next, lingering[0])
		lingering = lingering[1:]
	}
	w.replace(next)
	if len(lingering) > 0 {
		w.dropTimer.Reset(next[lingering[0]].until.Sub(now))
	}
}

// lingers reports whether a replaced version is still held. A version that was never
// active has no calls.
func (v *version) lingers(now time.Time, linger time.Duration) bool {
	if !v.served {
		return false
	}
	if v.until.IsZero() {
		v.until = now.Add(linger)
	}
	return now.Before(v.until)
}
