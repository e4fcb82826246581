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

// A Verdict is what a table says of an event.
type Verdict uint8

// The verdicts.
const (
	// Pass: the event is within the limits.
	Pass Verdict = iota
	// OverRate: its agent asks too often.
	OverRate
	// OverCalls: its agent has too many under way.
	OverCalls
)

// A Table keeps agents to limits. It is safe for many goroutines. A nil Table bounds
// nothing.
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
	mu sync.Mutex // guards what follows
	// keys are hashes of the agents' names, by a seed that nobody outside knows; 0:
	// nobody is there.
	keys [ways]uint64
	// due is when each has its whole burst again, in nanoseconds since the epoch, and
	// calls how many of its calls are under way.
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

// Key is an agent's key in the table. Beside what it says of itself there may be others
// who ask about it: each kind counts on its own.
func (t *Table) Key(kind byte, agent string) uint64 {
	const odd = 0x9e3779b97f4a7c15
	return max(maphash.String(t.seed, agent)^uint64(kind)*odd, 1)
}

// Enter counts an event, and says whether it is within the limits. One that is counts as
// a call under way until [Table.Leave]. One that is over the rate counts for nothing, and
// would not be after wait, if nothing came meanwhile.
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

// find is where an agent is. Where nobody knows it, and there is no room, somebody is
// forgotten: who has the fewest calls under way, and of those who is the next to have its
// whole burst again.
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
