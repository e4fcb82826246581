// Package ratelimit limits what one agent may use of a broker: events per second, events at
// once before that rate applies, calls under way, and stored data. An agent in a loop
// therefore leaves the other agents their share.
//
// The broker asks it at every event, so it does not allocate, and agents rarely share a
// lock. A [Table] uses the same memory for any number of agents. When it is full, it
// removes the agents that are furthest below their limits. A client that invents names
// therefore cannot make it forget an agent that is over a limit, unless the
// client is over more limits itself.
//
// All methods are safe for concurrent use.
//
// Only this module imports it.
package ratelimit

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	// ways is how many agents share a lock, and sets how many locks there are: room for
	// 131,072 agents, in about 3 MiB.
	ways = 16
	sets = 8192
)

// A Verdict is a table's answer for an event.
type Verdict uint8

// The verdicts.
const (
	// Pass: the event is within the limits.
	Pass Verdict = iota
	// OverRate means that the agent sends events too fast.
	OverRate
	// OverCalls: its agent has too many under way.
	OverCalls
)

// A Table holds agents to limits. It is safe for concurrent use. A nil Table bounds nothing.
type Table struct {
	seed  maphash.Seed
	epoch time.Time
	// interval is from one event to the next, and slack how far ahead of time an agent
	// may be; 0: there is no rate.
	interval, slack int64
	calls           int32 // 0: any number
	sets            []set
}

// A set are the agents that share a lock.
type set struct {
	mu sync.Mutex // guards the following fields
	// keys are hashes of the agents' names, with a seed that is secret to this process; 0: the
	// place is free.
	keys [ways]uint64
	// due is when each agent has its whole burst again, in nanoseconds since the epoch of the
	// table. calls is how many of its calls are under way.
	due   [ways]int64
	calls [ways]int32
}

// NewTable makes a table of limits that [Limits.Check] has nothing against; nil: they
// bound nothing.
func NewTable(l Limits) *Table {
	if l.None() {
		return nil
	}
	interval := int64(l.interval())
	return &Table{
		seed: maphash.MakeSeed(), epoch: time.Now(), calls: int32(min(l.Calls, 1<<30)),
		interval: interval, slack: int64(l.burst()-1) * interval, sets: make([]set, sets),
	}
}

// Key returns an agent's key in the table. An agent's own requests and requests of others about it
// have different kinds, and each kind counts apart.
func (t *Table) Key(kind byte, agent string) uint64 {
	const odd = 0x9e3779b97f4a7c15
	return max(maphash.String(t.seed, agent)^uint64(kind)*odd, 1)
}

// Enter counts an event, and returns whether it is within the limits. An accepted event counts as a
// call under way until [Table.Leave]. An event over the rate does not count. It would be accepted
// after wait, if no other event came before.
func (t *Table) Enter(key uint64, now time.Time) (v Verdict, wait time.Duration) {
	at := int64(now.Sub(t.epoch))
	s := t.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(key)
	if t.calls > 0 && s.calls[i] >= t.calls {
		return OverCalls, 0
	}
	if t.interval > 0 {
		due := max(s.due[i], at)
		if over := due - at - t.slack; over > 0 {
			return OverRate, time.Duration(over)
		}
		s.due[i] = due + t.interval
	} else {
		s.due[i] = at // by which it is forgotten
	}
	s.calls[i]++
	return Pass, 0
}

// Leave ends a call that Enter let pass.
func (t *Table) Leave(key uint64) {
	s := t.set(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.keys {
		if s.keys[i] == key {
			s.calls[i] = max(0, s.calls[i]-1)
			return
		}
	}
}

func (t *Table) set(key uint64) *set { return &t.sets[key%sets] }

// find returns the place of an agent. If the agent is unknown and the set is full, find removes the
// agent with the fewest calls under way, and of those the one that has its whole burst again first.
func (s *set) find(key uint64) int {
	for i := range s.keys {
		if s.keys[i] == key {
			return i
		}
	}
	least := 0
	for i := range s.keys {
		if s.keys[i] == 0 {
			least = i
			break
		}
		if s.calls[i] < s.calls[least] || s.calls[i] == s.calls[least] && s.due[i] < s.due[least] {
			least = i
		}
	}
	s.keys[least], s.due[least], s.calls[least] = key, 0, 0
	return least
}
