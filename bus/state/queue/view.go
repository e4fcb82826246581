package queue

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"strings"
	"time"
)

// A view is a snapshot of the items that concern one agent.
type view struct {
	// position is the revision up to which the view is complete. It may have newer items that were accepted
	// here.
	position          uint64
	own, session, all []*entry
	known             map[uint64]*entry
	leaving           map[uint64]bool
}

// there reports whether the item may still be in the bucket, and returns it if it is known.
func (v *view) there(seq uint64) (*entry, bool) {
	if e := v.known[seq]; e != nil {
		return e, true
	}
	for _, items := range [][]*entry{v.own, v.session, v.all} {
		l := itemList{items: items}
		if i, found := l.find(seq); found {
			return items[i], true
		}
	}
	return nil, v.leaving[seq] || seq > v.position
}

// view returns the items of an agent, of its session and for all agents, and those that the cursor names.
func (x *index) view(who scopes, c *cursor) *view {
	x.mu.RLock()
	defer x.mu.RUnlock()
	v := &view{position: x.position, own: x.copy(who.own), session: x.copy(who.session), all: x.copy(allScope)}
	v.known, v.leaving = make(map[uint64]*entry), make(map[uint64]bool)
	look := func(seq uint64) {
		if e := x.bySeq[seq]; e != nil {
			v.known[seq] = e
		} else if _, ok := x.leaving[seq]; ok {
			v.leaving[seq] = true
		}
	}
	for _, seq := range c.DoneAbove {
		look(seq)
	}
	for _, e := range c.Ends {
		look(e.Seq)
	}
	for i := range c.Leases {
		for _, seq := range c.Leases[i].Seqs {
			look(seq)
		}
	}
	return v
}

// copy returns the items of a list. The caller holds the lock.
func (x *index) copy(scope string) []*entry {
	if l := x.lists[scope]; l != nil {
		return slices.Clone(l.items)
	}
	return nil
}

// merged returns the items of all lists in the order of their sequences.
func (v *view) merged() []*entry {
	all := slices.Concat(v.own, v.session, v.all)
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.seq(), b.seq()) })
	return all
}

// scopes are the first tokens of the keys of items for an agent; session is empty without a session.
type scopes struct{ own, session string }

// deadlines are the expiry times of items, soonest first.
type deadlines []deadline

type deadline struct {
	at  int64 // Unix time in nanoseconds
	seq uint64
}

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at < d[j].at }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }

// Push and Pop implement heap.Interface.
func (d *deadlines) Push(v any) { *d = append(*d, v.(deadline)) }

// Pop removes the last one.
func (d *deadlines) Pop() any {
	old := *d
	last := old[len(old)-1]
	*d = old[:len(old)-1]
	return last
}

func (d *deadlines) push(at time.Time, seq uint64) { heap.Push(d, deadline{at.UnixNano(), seq}) }

// over removes and returns the items that have expired at that server time. A caller that cannot end one puts it back with
// [index.postpone].
func (x *index) over(now time.Time) (all []*entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.soon) > 2*len(x.bySeq)+1000 {
		x.soon = slices.DeleteFunc(x.soon, func(d deadline) bool { return x.bySeq[d.seq] == nil })
		heap.Init(&x.soon)
	}
	for len(x.soon) > 0 && x.soon[0].at <= now.UnixNano() {
		if e := x.bySeq[heap.Pop(&x.soon).(deadline).seq]; e != nil {
			all = append(all, e)
		}
	}
	return all
}

// postpone schedules another check of the item.
func (x *index) postpone(at time.Time, e *entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.bySeq[e.seq()] == e {
		x.soon.push(at, e.seq())
	}
}

// waiting returns the own items of an agent.
func (x *index) waiting(scope string) []*entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.copy(scope)
}

// snapshot returns all items, in order.
func (x *index) snapshot() []*entry {
	x.mu.RLock()
	all := make([]*entry, 0, len(x.bySeq))
	for _, e := range x.bySeq {
		all = append(all, e)
	}
	x.mu.RUnlock()
	v := view{all: all}
	return v.merged()
}

// bySource counts the waiting items.
func (x *index) bySource() map[string]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return maps.Clone(x.sources)
}

// oldest returns when the oldest waiting item of a single agent was accepted; zero: there is no such item. Items for several agents
// stay until they expire.
func (x *index) oldest() (at time.Time) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for scope, l := range x.lists {
		if strings.HasPrefix(scope, agentScope) && len(l.items) > 0 && (at.IsZero() || l.items[0].item.Accepted.Before(at)) {
			at = l.items[0].item.Accepted
		}
	}
	return at
}
