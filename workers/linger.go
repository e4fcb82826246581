package workers

import (
	"maps"
	"slices"
	"time"
)

const (
	// defaultLinger is how long a version that was active is held when it is no
	// longer kept. A call goes through one pool after the other, each time by the
	// version that it began with, while changes may follow each other quickly.
	defaultLinger = 2 * time.Minute
	// maxLingering bounds how many such versions are held.
	maxLingering = 32
)

// drop lets go of all versions but those that are kept, and those that calls
// may still be under way with.
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
		w.later.Reset(next[lingering[0]].until.Sub(now))
	}
}

// lingers reports whether a version that is no longer kept is still held. One
// that never was active has no calls.
func (v *version) lingers(now time.Time, linger time.Duration) bool {
	if !v.served {
		return false
	}
	if v.until.IsZero() {
		v.until = now.Add(linger)
	}
	return now.Before(v.until)
}
