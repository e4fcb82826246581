package daemon

import (
	"context"
	"slices"
	"sync"
)

const (
	// maxLoops bounds the agents whose answers are remembered, and maxAnswers the
	// answers of one. What is forgotten comes again.
	maxLoops   = 10_000
	maxAnswers = 64
)

// loops remember what agents' own loops were handed over HTTP and did not say to
// have yet. A loop that acknowledges says it by /v1/ack. One that never did, and
// does not ask with ?ack=explicit, says it by asking on: it went on, so it had the
// answer.
type loops struct {
	mu      sync.Mutex // guards what follows
	byAgent map[string]*loop
	order   []string // agents, oldest first
}

type loop struct {
	explicit bool // it acknowledges
	answers  []answered
}

// An answered call whose answer may be on its way still.
type answered struct {
	events []string // its ids
	told   func(context.Context)
}

func newLoops() *loops { return &loops{byAgent: map[string]*loop{}} }

// of is an agent's loop. The caller holds the lock.
func (l *loops) of(agent string) *loop {
	one := l.byAgent[agent]
	if one == nil {
		if len(l.order) >= maxLoops {
			delete(l.byAgent, l.order[0])
			l.order = l.order[1:]
		}
		one = &loop{}
		l.byAgent[agent] = one
		l.order = append(l.order, agent)
	}
	return one
}

// asks takes in that an agent asks on. explicit: it will acknowledge.
func (l *loops) asks(ctx context.Context, agent string, explicit bool) {
	l.mu.Lock()
	var had []answered
	if explicit {
		l.of(agent).explicit = true
	} else if one := l.byAgent[agent]; one != nil && !one.explicit {
		had, one.answers = one.answers, nil
	}
	l.mu.Unlock()
	tell(ctx, had)
}

// answered takes in what an agent was handed.
func (l *loops) answered(agent string, a answered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of(agent)
	one.answers = append(one.answers, a)
	one.answers = slices.Delete(one.answers, 0, max(0, len(one.answers)-maxAnswers))
}

// acknowledges takes in that an agent has the answers to events, and counts
// those that are known.
func (l *loops) acknowledges(ctx context.Context, agent string, events []string) int {
	l.mu.Lock()
	one := l.of(agent)
	one.explicit = true
	var had []answered
	one.answers = slices.DeleteFunc(one.answers, func(a answered) bool {
		has := slices.ContainsFunc(a.events, func(id string) bool { return slices.Contains(events, id) })
		if has {
			had = append(had, a)
		}
		return has
	})
	l.mu.Unlock()
	tell(ctx, had)
	return len(had)
}

func tell(ctx context.Context, all []answered) {
	for _, a := range all {
		a.told(ctx)
	}
}
