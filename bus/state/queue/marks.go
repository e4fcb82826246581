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
	// spans is how many parts a dedup window has; ends in one part share an entry.
	spans = 48
	// markEvery is how often marks are written. A process that dies and stays away for longer than the dedup
	// window loses the marks of the items that ended since the last write.
	markEvery = 10 * time.Second
)

// marks are the high-water marks of producers: the highest number of an item whose end may be forgotten. They are written
// soon after the end, with the time from which they apply, so that no process must run when an end is forgotten.
type marks struct {
	window, span time.Duration // the dedup window, and one part of it

	mu  sync.Mutex // guards all
	all map[string]*mark
}

// A mark is the mark of one producer in one scope.
type mark struct {
	high     high
	revision uint64
	// ends are the numbers of recently ended items, oldest first.
	ends []span
}

// A high is the stored form of a mark.
type high struct {
	// N is the number up to which only known items are accepted.
	N uint64 `json:"n,omitzero"`
	// Then are higher numbers that apply later, by the server's clock, soonest first.
	Then []futureMark `json:"then,omitzero"`
}

// A futureMark is a number and the time from which it applies.
type futureMark struct {
	N    uint64    `json:"n"`
	From time.Time `json:"from"`
}

// at returns the number that applies at that time.
func (h *high) at(now time.Time) uint64 {
	n := h.N
	for _, l := range h.Then {
		if !l.From.After(now) {
			n = max(n, l.N)
		}
	}
	return n
}

// covers reports whether the mark will have reached the number then.
func (h *high) covers(n uint64, by time.Time) bool { return h.at(by) >= n }

// with returns the mark with additional numbers, in its shortest form.
func (h *high) with(now time.Time, more []futureMark) high {
	all := slices.Concat(h.Then, more)
	slices.SortFunc(all, func(a, b futureMark) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(b.N, a.N)) })
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

// of returns the mark that applies now, by the server's clock, to the item with the key.
func (m *marks) of(itemKey string, now time.Time) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.all[markKey(itemKey)]; k != nil {
		return k.high.at(now)
	}
	return 0
}

// ended records that the item with the key ended at that server time.
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

// take stores a revision of a mark from the bucket.
func (m *marks) take(e kv.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Revision > m.get(e.Key).revision {
		m.set(e)
	}
}

// replace stores the leader's revision of a mark.
func (m *marks) replace(e kv.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.get(e.Key); e.Revision > k.revision || e.Revision == 0 {
		m.set(e)
	}
}

// set stores a revision. The caller holds the lock.
func (m *marks) set(e kv.Entry) {
	k := m.get(e.Key)
	k.revision, k.high = e.Revision, high{}
	if e.Kind == kv.Put && e.Revision > 0 {
		_ = schema.Unmarshal(e.Value, &k.high) // an undecodable one stays zero
	} else if len(k.ends) == 0 {
		delete(m.all, e.Key)
	}
}

// A raise is a mark to write.
type raise struct {
	key     string
	to      high
	current uint64
}

// raises returns the marks that do not cover all ended items yet.
func (m *marks) raises(now time.Time) (all []raise) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, k := range m.all {
		var more []futureMark
		k.ends = slices.DeleteFunc(k.ends, func(s span) bool {
			by := s.from.Add(m.window)
			covered := k.high.covers(s.highest, by)
			if !covered {
				more = append(more, futureMark{N: s.highest, From: by})
			}
			return covered && now.Sub(s.from) >= m.span // later ends in this part share the entry
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

// sweepMarks writes the marks of ended items.
func (q *Queue) sweepMarks() {
	now := q.clock.Now()
	if now.Sub(q.marked) < markEvery {
		return
	}
	q.marked = now
	q.logRememberFor()
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

// raise writes one mark, unless another process was faster.
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
			q.marks.replace(e) // if it is too low, the next sweep raises it
		}
		return err
	}
	if err != nil {
		return err
	}
	q.marks.take(kv.Entry{Key: r.key, Value: value, Revision: revision})
	return q.steps([]Step{StepMarkStored})
}
