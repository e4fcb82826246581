package queue

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// The end of an item is a message of its own for as long as it is remembered, and takes
// its room on the disk of the bucket's server and in its memory. Where very many end they
// would take all of it, and nothing more could be accepted. So beyond a bound the ends of
// numbered items are remembered for less long, because something much smaller can take
// their place: their producer's mark, from which on a repeat is too old instead of a
// duplicate. It is written before such an end, so that no repeat is ever accepted.

const (
	// crowdedPart and packedPart are the parts of the window for which ends are remembered
	// when there are more than half as many as may be, and than three quarters.
	crowdedPart = 24
	packedPart  = 144
	// leastKept is the shortest time, and aheadBy how much sooner a mark holds than an
	// end is forgotten.
	leastKept = 2 * time.Minute
	aheadBy   = time.Minute
	// grid is into how many parts that time is divided: what is forgotten in the same
	// one stands in a mark once.
	grid = 16
)

// kept is for how long the end of a numbered item is remembered now.
func (q *Queue) kept() time.Duration {
	ends := int64(q.items.mirror.Info().Messages) - int64(q.index.size())
	most, part := int64(q.o.MaxEnds), time.Duration(1)
	switch {
	case ends > most/4*3:
		part = packedPart
	case ends > most/2:
		part = crowdedPart
	}
	return q.keptWith(part)
}

// keptWith is for how long an end is remembered for that part of the window.
func (q *Queue) keptWith(part time.Duration) time.Duration {
	return min(q.o.Dedup, max(q.o.Dedup/part, leastKept))
}

// keptFor is for how long the end of the item with the key is remembered: as short as the
// number of ends asks for and its producer's mark allows. The mark was written when there
// may have been fewer ends, for a longer time.
func (q *Queue) keptFor(key string) time.Duration {
	third := key[strings.LastIndexByte(key, '.')+1:]
	if strings.HasPrefix(third, nameless) {
		return min(q.o.Dedup, madeUpFor)
	}
	n, err := strconv.ParseUint(third, 10, 64)
	if err != nil {
		return q.o.Dedup
	}
	now := q.clock.Now()
	for _, short := range []time.Duration{q.kept(), q.keptWith(crowdedPart)} {
		if short < q.o.Dedup && q.marks.holds(markKey(key), n, now.Add(short-aheadBy)) {
			return short
		}
	}
	return q.o.Dedup
}

// foretell writes the marks of an agent's items that are about to end, if their ends are
// to be forgotten soon. What cannot be written is remembered for as long as ever.
func (q *Queue) foretell(ctx context.Context, done []*entry) {
	short := q.kept()
	if short == q.o.Dedup {
		return
	}
	now := q.clock.Now()
	tops := make(map[string]uint64)
	for _, e := range done {
		if e.item.Number > 0 {
			key := markKey(e.item.Key)
			tops[key] = max(tops[key], e.item.Number)
		}
	}
	for key, n := range tops {
		r, needed := q.marks.ahead(key, later{N: n, From: now.Add(short - aheadBy).Truncate(short / grid)}, now)
		if !needed {
			continue
		}
		if err := q.raise(ctx, r); err != nil && q.life.Err() == nil {
			q.log.Info("cannot write the mark of a producer; the broker remembers its ended items longer", "error", err)
		}
	}
}

// holds reports whether the mark is known to be at the number by that time.
func (m *marks) holds(key string, n uint64, by time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.all[key]
	return k != nil && k.high.covers(n, by)
}

// ahead is how the mark is to be written so that it is at a number by a time, unless it
// is then.
func (m *marks) ahead(key string, l later, now time.Time) (r raise, needed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.get(key)
	if k.high.covers(l.N, l.From) {
		return r, false
	}
	return raise{key: key, to: k.high.with(now, []later{l}), current: k.revision}, true
}

// sayKept says when ends begin to be remembered for less long, or for longer again.
func (q *Queue) sayKept() {
	now := q.kept()
	if now == q.saidKept || q.saidKept == 0 && now == q.o.Dedup {
		return
	}
	if q.saidKept = now; now < q.o.Dedup {
		q.log.Warn("too many ended items to remember: the broker recognises repeats of numbered items for a shorter time, and refuses later ones as too old",
			"for", schema.Duration(now), "instead_of", schema.Duration(q.o.Dedup), "bound", q.o.MaxEnds)
		return
	}
	q.log.Info("the broker remembers ended items for the full time again", "for", schema.Duration(now))
}
