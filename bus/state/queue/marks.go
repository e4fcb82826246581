package queue

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// spans is in how many parts a dedup window is divided: what ended in one part
	// is noted together.
	spans = 48
	// markEvery is how often marks are written. Who stops without a word for longer
	// than the dedup window has not noted what ended since then.
	markEvery = 10 * time.Second
)

// marks are the producers' high-water marks: the highest number that may not be
// known any more as one of an item that ended. They are written soon after the
// end and say from when on they hold, so that it does no harm if nobody is there
// when an end is forgotten.
type marks struct {
	window, span time.Duration // the dedup window, and one part of it

	mu  sync.Mutex // guards all
	all map[string]*mark
}

// A mark is that of one producer in one scope.
type mark struct {
	high     high
	revision uint64
	// ends are the numbers of items that ended lately, the oldest first.
	ends []span
}

// A high is what is stored of a mark.
type high struct {
	// N is the number up to which nothing is accepted any more that is not known.
	N uint64 `json:"n,omitzero"`
	// Then are higher ones that hold later, by the server's clock, soonest first.
	Then []later `json:"then,omitzero"`
}

// later is a number and from when on it holds.
type later struct {
	N    uint64    `json:"n"`
	From time.Time `json:"from"`
}

// at is the number that holds at that time.
func (h *high) at(now time.Time) uint64 {
	n := h.N
	for _, l := range h.Then {
		if !l.From.After(now) {
			n = max(n, l.N)
		}
	}
	return n
}

// covers reports whether the number holds by that time.
func (h *high) covers(n uint64, by time.Time) bool { return h.at(by) >= n }

// with is the same with what else has to hold, said as shortly as it can be.
func (h *high) with(now time.Time, more []later) high {
	all := slices.Concat(h.Then, more)
	slices.SortFunc(all, func(a, b later) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(b.N, a.N)) })
	next := high{N: h.at(now)}
	top := next.N
	for _, l := range all {
		if l.N > top {
			top = l.N
			next.Then = append(next.Then, l)
		}
	}
	return next
}

// A span is the highest number that ended in one part of the window.
type span struct {
	from    time.Time
	highest uint64
}

func newMarks(window time.Duration) *marks {
	return &marks{window: window, span: window / spans, all: make(map[string]*mark)}
}

func (m *marks) get(key string) *mark {
	k := m.all[key]
	if k == nil {
		k = new(mark)
		m.all[key] = k
	}
	return k
}

// of is the mark that holds now, by the server's clock, for the item with the key.
func (m *marks) of(itemKey string, now time.Time) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.all[markKey(itemKey)]; k != nil {
		return k.high.at(now)
	}
	return 0
}

// ended notes that the item with the key ended at that time of the server's.
func (m *marks) ended(itemKey string, at time.Time) {
	n, err := strconv.ParseUint(itemKey[strings.LastIndexByte(itemKey, '.')+1:], 10, 64)
	if err != nil || strings.Count(itemKey, ".") != 2 {
		return // it has no number
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.get(markKey(itemKey))
	if i := len(k.ends) - 1; i >= 0 && at.Sub(k.ends[i].from) < m.span {
		k.ends[i].highest = max(k.ends[i].highest, n)
		return
	}
	k.ends = append(k.ends, span{from: at, highest: n})
}

// take keeps a revision of a mark that the bucket told of.
func (m *marks) take(e kv.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Revision > m.get(e.Key).revision {
		m.set(e)
	}
}

// replace keeps what the leader says of a mark.
func (m *marks) replace(e kv.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.get(e.Key); e.Revision > k.revision || e.Revision == 0 {
		m.set(e)
	}
}

// set keeps a revision. The caller holds the lock.
func (m *marks) set(e kv.Entry) {
	k := m.get(e.Key)
	k.revision, k.high = e.Revision, high{}
	if e.Kind == kv.Put && e.Revision > 0 {
		_ = schema.Unmarshal(e.Value, &k.high) // one that cannot be read says nothing
	} else if len(k.ends) == 0 {
		delete(m.all, e.Key)
	}
}

// A raise is a mark that is to be written.
type raise struct {
	key     string
	to      high
	current uint64
}

// raises are the marks that do not say yet all that ended.
func (m *marks) raises(now time.Time) (all []raise) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, k := range m.all {
		var more []later
		k.ends = slices.DeleteFunc(k.ends, func(s span) bool {
			by := s.from.Add(m.window)
			covered := k.high.covers(s.highest, by)
			if !covered {
				more = append(more, later{N: s.highest, From: by})
			}
			return covered && now.Sub(s.from) >= m.span // what ends until then is noted with it
		})
		switch {
		case len(more) > 0:
			all = append(all, raise{key: key, to: k.high.with(now, more), current: k.revision})
		case len(k.ends) == 0 && k.revision == 0:
			delete(m.all, key)
		}
	}
	return all
}

// sweepMarks writes the marks of what ended.
func (q *Queue) sweepMarks() {
	now := q.clock.Now()
	if now.Sub(q.marked) < markEvery {
		return
	}
	q.marked = now
	q.sayKept()
	if err := q.raiseAll(q.life, now); err != nil && q.life.Err() == nil {
		q.log.Info("cannot write the mark of a producer; the broker tries again", "error", err)
		q.marked = time.Time{}
	}
}

func (q *Queue) raiseAll(ctx context.Context, now time.Time) error {
	for _, r := range q.marks.raises(now) {
		if err := q.raise(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// raise writes one mark, unless somebody did.
func (q *Queue) raise(ctx context.Context, r raise) error {
	ctx, cancel := context.WithTimeout(ctx, kv.TryFor)
	defer cancel()
	value, err := schema.Marshal(r.to)
	if err != nil {
		return err
	}
	revision, err := q.cursors.Write(ctx, kv.Write{Key: r.key, Value: value, Last: r.current})
	if kv.Refused(err) {
		e, err := q.cursors.Last(ctx, r.key)
		if err == nil {
			e.Key = r.key
			q.marks.replace(e) // and if that is too low, again with the next sweep
		}
		return err
	}
	if err != nil {
		return err
	}
	q.marks.take(kv.Entry{Key: r.key, Value: value, Revision: revision})
	return q.steps([]Step{StepMarkStored})
}
