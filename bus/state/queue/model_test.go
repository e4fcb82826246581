package queue_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// A model is what a queue promises. It knows nothing of how that is kept, and
// no more of the time than that leases and expiries have ends: between the
// earliest and the latest end of a lease both are right.
type model struct {
	now    time.Duration
	window time.Duration // in which ends are remembered
	items  []*modelItem  // in order of their sequences
	agents map[string]*modelAgent
}

type modelItem struct {
	key, agent, session, source, tool string // tool: the only one that it fits; empty: any
	number, sequence                  uint64
	expires                           time.Duration // 0: never
	late                              bool
	ended                             schema.ItemState // empty: it has not
	endedAt                           time.Duration
	// got are the agents that need it no more.
	got map[string]bool
}

type modelAgent struct {
	name   string
	since  uint64
	leases []*modelLease
}

// A modelLease is what went out with an event.
type modelLease struct {
	event            string
	items            []*modelItem
	surely, possibly time.Duration // until when it is open
}

// waiting are its items that did not end.
func (l *modelLease) waiting() []*modelItem {
	return slices.DeleteFunc(slices.Clone(l.items), func(it *modelItem) bool { return it.ended != "" })
}

func newModel(window time.Duration) *model {
	return &model{window: window, agents: make(map[string]*modelAgent)}
}

// seen notes that an agent was seen; what has a lower sequence than next came before.
func (m *model) seen(name string, next uint64) *modelAgent {
	a := m.agents[name]
	if a == nil {
		a = &modelAgent{name: name, since: next}
		m.agents[name] = a
	}
	return a
}

func (m *model) find(key string) *modelItem {
	for _, it := range m.items {
		if it.key == key {
			return it
		}
	}
	return nil
}

func (m *model) bySequence(seq uint64) *modelItem {
	for _, it := range m.items {
		if it.sequence == seq {
			return it
		}
	}
	return nil
}

// accepted takes over a new item.
func (m *model) accepted(it *modelItem) {
	it.got = make(map[string]bool)
	i, _ := slices.BinarySearchFunc(m.items, it.sequence, func(x *modelItem, seq uint64) int { return int(int64(x.sequence) - int64(seq)) })
	m.items = slices.Insert(m.items, i, it)
}

// receipt says what is wrong with what was answered to an item; next is the new
// item, if it is one.
func (m *model) receipt(next *modelItem, r schema.Receipt, tooOld bool) string {
	old := m.find(next.key)
	switch {
	case tooOld:
		return m.tooOld(next)
	case old == nil && r.Duplicate:
		return "it was never accepted, and is called a duplicate"
	case old == nil && r.State != schema.Queued:
		return fmt.Sprintf("a new item is %s", r.State)
	case old == nil:
		return ""
	case !r.Duplicate || r.Sequence != old.sequence:
		return fmt.Sprintf("it was accepted before as %d", old.sequence)
	case old.ended != "" && r.State != old.ended && r.State != "":
		return fmt.Sprintf("it ended as %s, and is called %s", old.ended, r.State)
	case old.ended == "" && r.State != schema.Queued && r.State != schema.Leased:
		return fmt.Sprintf("it waits, and is called %s", r.State)
	}
	return ""
}

// tooOld says why the number of an item cannot be too old.
func (m *model) tooOld(next *modelItem) string {
	prefix := next.key[:strings.LastIndexByte(next.key, '.')+1]
	for _, it := range m.items {
		if it.number >= next.number && strings.HasPrefix(it.key, prefix) && it.ended != "" && m.now-it.endedAt > m.window/3 {
			if old := m.find(next.key); old != nil && old.ended == "" {
				return "it waits, and is called too old"
			}
			return ""
		}
	}
	return "nothing that high ended long ago"
}

// meant reports whether the item is for the agent in that session.
func (m *model) meant(it *modelItem, a *modelAgent, session string) bool {
	switch {
	case it.agent != "":
		return it.agent == a.name
	case it.session != "" && it.session != session:
		return false
	}
	return it.late || it.sequence >= a.since
}

// over says whether the item's time may be up, and surely is.
func (m *model) over(it *modelItem) (perhaps, surely bool) {
	return it.expires > 0 && m.now >= it.expires-time.Second, it.expires > 0 && m.now >= it.expires+time.Second
}

// ack ends the leases of events.
func (m *model) ack(a *modelAgent, events []string) {
	a.leases = slices.DeleteFunc(a.leases, func(l *modelLease) bool {
		if !slices.Contains(events, l.event) {
			return false
		}
		for _, it := range l.items {
			it.got[a.name] = true
			if it.agent != "" && it.ended == "" {
				it.ended, it.endedAt = schema.Delivered, m.now
			}
		}
		return true
	})
}

// renew notes that the leases of events hold from now on.
func (m *model) renew(a *modelAgent, events ...string) {
	for _, l := range a.leases {
		if slices.Contains(events, l.event) {
			l.surely, l.possibly = m.now+queue.LeaseFor, max(l.possibly, m.now+queue.LeaseFor)
		}
	}
}

// reopened notes that a node sees all leases for the first time now.
func (m *model) reopened() {
	for _, a := range m.agents {
		for _, l := range a.leases {
			l.possibly = max(l.possibly, m.now+queue.LeaseFor)
		}
	}
}

// A modelClaim is what was asked.
type modelClaim struct {
	agent, session, event, tool string
}

// claimed takes over what a claim took, and says what is wrong with it.
func (m *model) claimed(a *modelAgent, c modelClaim, taken []*modelItem) string {
	// An event all of whose items ended is like one that never asked.
	a.leases = slices.DeleteFunc(a.leases, func(l *modelLease) bool { return l.event == c.event && len(l.waiting()) == 0 })
	for _, l := range a.leases {
		if l.event == c.event {
			return m.again(l, taken)
		}
	}
	for i, it := range taken {
		if why := m.wrong(a, c, it); why != "" {
			return fmt.Sprintf("%s went out: %s", it.key, why)
		}
		if i > 0 && taken[i-1].sequence >= it.sequence {
			return "it is not in order"
		}
	}
	if missing := m.missing(a, c, taken); missing != "" {
		return missing
	}
	m.lease(a, c.event, taken)
	return ""
}

// lease notes what went out.
func (m *model) lease(a *modelAgent, event string, taken []*modelItem) {
	if len(taken) == 0 {
		return
	}
	for _, l := range a.leases {
		l.items = slices.DeleteFunc(l.items, func(it *modelItem) bool { return slices.Contains(taken, it) })
	}
	a.leases = slices.DeleteFunc(a.leases, func(l *modelLease) bool { return len(l.items) == 0 })
	end := m.now + queue.LeaseFor
	a.leases = append(a.leases, &modelLease{event: event, items: slices.Clone(taken), surely: end, possibly: end})
}

// again says what is wrong with what the same event got again.
func (m *model) again(l *modelLease, taken []*modelItem) string {
	there := l.waiting()
	if !slices.Equal(there, taken) {
		return fmt.Sprintf("the same event got %v, and before %v", keys(taken), keys(there))
	}
	l.possibly = max(l.possibly, m.now+queue.LeaseFor) // it may have been renewed
	return ""
}

// wrong says why the item must not go out.
func (m *model) wrong(a *modelAgent, c modelClaim, it *modelItem) string {
	_, over := m.over(it)
	switch {
	case it.ended != "":
		return "it was " + string(it.ended)
	case it.got[a.name]:
		return "the agent has it already"
	case !m.meant(it, a, c.session):
		return "it is not for the agent"
	case it.tool != "" && it.tool != c.tool && c.tool != "any":
		return "it does not fit"
	case over:
		return "its time is up"
	}
	for _, l := range a.leases {
		for _, other := range l.items {
			if other.ended == "" && other.source == it.source && m.now < l.surely {
				return fmt.Sprintf("%s, of the same source, is on its way with %s", other.key, l.event)
			}
		}
	}
	return ""
}

// missing names an item that had to go out.
func (m *model) missing(a *modelAgent, c modelClaim, taken []*modelItem) string {
	for _, it := range m.items {
		if slices.Contains(taken, it) || m.wrong(a, c, it) != "" {
			continue
		}
		if perhaps, _ := m.over(it); perhaps {
			continue
		}
		skipped := func(other *modelItem) bool { return other.source == it.source && other.sequence > it.sequence }
		if !m.held(a, it.source) || slices.ContainsFunc(taken, skipped) {
			return fmt.Sprintf("%s did not go out, but %v", it.key, keys(taken))
		}
	}
	return ""
}

// held reports whether something of that source may be on its way.
func (m *model) held(a *modelAgent, source string) bool {
	return slices.ContainsFunc(a.leases, func(l *modelLease) bool {
		return m.now < l.possibly && slices.ContainsFunc(l.items, func(it *modelItem) bool { return it.ended == "" && it.source == source })
	})
}

// leased says whether the item is on its way to anybody: perhaps, and surely.
func (m *model) leased(it *modelItem) (perhaps, surely bool) {
	for _, a := range m.agents {
		for _, l := range a.leases {
			if slices.Contains(l.items, it) {
				perhaps, surely = perhaps || m.now < l.possibly, surely || m.now < l.surely
			}
		}
	}
	return perhaps, surely
}

// expired takes over that the item is gone, and says why it must not be.
func (m *model) expired(it *modelItem) string {
	perhaps, _ := m.over(it)
	_, leased := m.leased(it)
	switch {
	case it.ended != "":
		return "it was " + string(it.ended)
	case !perhaps:
		return "its time was not up"
	case leased && it.agent != "":
		return "it is on its way"
	}
	it.ended, it.endedAt = schema.Expired, min(m.now, it.expires) // or a little later
	return ""
}

func keys(items []*modelItem) (all []string) {
	for _, it := range items {
		all = append(all, it.key)
	}
	return all
}
