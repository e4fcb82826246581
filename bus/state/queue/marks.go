package queue

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// spans is in how many parts a dedup window is divided: what ended in one part
// is noted together.
const spans = 48

// marks are the producers' high-water marks: the highest number that may not be
// known any more as one of an item that ended.
type marks struct {
	span time.Duration // one part of the window

	mu  sync.Mutex // guards all
	all map[string]*mark
}

// A mark is that of one producer in one scope.
type mark struct {
	value    uint64
	revision uint64
	// ends are the numbers of items that ended lately, the oldest first.
	ends []span
}

// A span is the highest number that ended in one part of the window.
type span struct {
	from    time.Time
	highest uint64
}

func newMarks(window time.Duration) *marks {
	return &marks{span: window / spans, all: make(map[string]*mark)}
}

func (m *marks) get(key string) *mark {
	k := m.all[key]
	if k == nil {
		k = new(mark)
		m.all[key] = k
	}
	return k
}

// of is the mark that holds for the item with the key.
func (m *marks) of(itemKey string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.all[markKey(itemKey)]; k != nil {
		return k.value
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
	k.revision, k.value = e.Revision, 0
	if e.Kind == kv.Put && e.Revision > 0 {
		_ = schema.Unmarshal(e.Value, &k.value)
	} else if len(k.ends) == 0 {
		delete(m.all, e.Key)
	}
}

// A raise is a mark that is to be written.
type raise struct {
	key         string
	to, current uint64
}

// raises are the marks that do not say yet what ended before that time of the
// server's.
func (m *marks) raises(before time.Time) (all []raise) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, k := range m.all {
		to := uint64(0)
		for _, s := range k.ends {
			if s.from.Before(before) {
				to = max(to, s.highest)
			}
		}
		if to > k.value {
			all = append(all, raise{key: key, to: to, current: k.revision})
			continue
		}
		k.ends = slices.DeleteFunc(k.ends, func(s span) bool { return s.from.Before(before) })
		if len(k.ends) == 0 && k.revision == 0 {
			delete(m.all, key)
		}
	}
	return all
}

// sweepMarks writes the marks of what ended half a window ago.
func (q *Queue) sweepMarks() {
	now := q.clock.Now()
	if now.Sub(q.marked) < q.marks.span/2 {
		return
	}
	q.marked = now
	for _, r := range q.marks.raises(now.Add(-q.o.Dedup / 2)) {
		if err := q.raise(r); err != nil {
			if q.life.Err() == nil {
				q.log.Info("the mark of a producer could not be written; trying again", "key", r.key, "error", err)
			}
			q.marked = time.Time{}
			return
		}
	}
}

// raise writes one mark, unless somebody did.
func (q *Queue) raise(r raise) error {
	ctx, cancel := context.WithTimeout(q.life, kv.TryFor)
	defer cancel()
	value := strconv.AppendUint(nil, r.to, 10)
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
