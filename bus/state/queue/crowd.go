package queue

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// The end of an item is stored as a message, on disk and in the memory of the server, for as long as it is
// remembered. Too many ends would use all of the space. Above a bound the ends of numbered items are therefore
// remembered for a shorter time. The producer's mark replaces them: a repeat is then too old instead of a
// duplicate. The mark is written before such an end, so no repeat is ever accepted.

const (
	// crowdedPart and packedPart divide the time for which ends are remembered, with more than half
	// and more than three quarters of their maximum.
	crowdedPart = 24
	packedPart  = 144
	// leastKept is the shortest time. aheadBy is how long before the end of that time the mark
	// applies.
	leastKept = 2 * time.Minute
	aheadBy   = time.Minute
	// grid divides that time into parts. Ends in one part share an entry of a mark.
	grid = 16
)

// rememberFor returns how long the end of a numbered item is remembered now.
func (q *Queue) rememberFor() time.Duration {
	ends := int64(q.items.mirror.Info().Messages) - int64(q.index.size())
	most, part := int64(q.o.MaxEnds), time.Duration(1)
	switch {
	case ends > most/4*3:
		part = packedPart
	case ends > most/2:
		part = crowdedPart
	}
	return q.rememberForWith(part)
}

// rememberForWith returns how long an end is remembered with a divisor.
func (q *Queue) rememberForWith(part time.Duration) time.Duration {
	return min(q.o.Dedup, max(q.o.Dedup/part, leastKept))
}

// rememberKeyFor returns how long the end of the item with the key is remembered: as short as the number of ends requires
// and the producer's mark allows. The mark may be from a time with fewer ends.
func (q *Queue) rememberKeyFor(key string) time.Duration {
	third := key[strings.LastIndexByte(key, '.')+1:]
	if strings.HasPrefix(third, nameless) {
		return min(q.o.Dedup, madeUpFor)
	}
	n, err := strconv.ParseUint(third, 10, 64)
	if err != nil {
		return q.o.Dedup
	}
	now := q.clock.Now()
	for _, short := range []time.Duration{q.rememberFor(), q.rememberForWith(crowdedPart)} {
		if short < q.o.Dedup && q.marks.holds(markKey(key), n, now.Add(short-aheadBy)) {
			return short
		}
	}
	return q.o.Dedup
}

// foretell writes the marks for an agent's items that are about to end, if their ends are remembered for a shorter
// time. After a failed write they are remembered for the full time.
func (q *Queue) foretell(ctx context.Context, done []*entry) {
	short := q.rememberFor()
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
		r, needed := q.marks.ahead(key, futureMark{N: n, From: now.Add(short - aheadBy).Truncate(short / grid)}, now)
		if !needed {
			continue
		}
		if err := q.raise(ctx, r); err != nil && q.life.Err() == nil {
			q.log.Info("cannot write the mark of a producer; the broker remembers its ended items longer", "error", err)
		}
	}
}

// holds reports whether the mark will have reached the number then.
func (m *marks) holds(key string, n uint64, by time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.all[key]
	return k != nil && k.high.covers(n, by)
}

// ahead returns the write after which the mark reaches a number by a time, unless it does already.
func (m *marks) ahead(key string, l futureMark, now time.Time) (r raise, needed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.get(key)
	if k.high.covers(l.N, l.From) {
		return r, false
	}
	return raise{key: key, to: k.high.with(now, []futureMark{l}), current: k.revision}, true
}

// logRememberFor logs changes of how long ends are remembered.
func (q *Queue) logRememberFor() {
	now := q.rememberFor()
	if now == q.loggedFor || q.loggedFor == 0 && now == q.o.Dedup {
		return
	}
	if q.loggedFor = now; now < q.o.Dedup {
		q.log.Warn("too many ended items to remember: the broker recognises repeats of numbered items for a shorter time, and refuses later ones as too old",
			"for", schema.Duration(now), "instead_of", schema.Duration(q.o.Dedup), "bound", q.o.MaxEnds)
		return
	}
	q.log.Info("the broker remembers ended items for the full time again", "for", schema.Duration(now))
}
