package daemon

import (
	"context"
	"slices"
	"sync"
)

const (
	// maxLoops limits the number of agents whose answers are remembered. maxAnswers limits
	// the answers of one agent. The fabric sends the items of a dropped answer again.
	maxLoops   = 10_000
	maxAnswers = 64
)

// loops remembers the items that loops got over HTTP and have not acknowledged. A loop
// acknowledges with /v1/ack. For a loop that has never done so, and does not ask with
// ?ack=explicit, the next request acknowledges: the loop continued, which shows that it had
// the answer.
type loops struct {
	mu      sync.Mutex // guards what follows
	byAgent map[string]*loop
	order   []string // agents, oldest first
}

type loop struct {
	explicit bool // the loop uses /v1/ack
	answers  []answered
}

// answered is a call whose answer may still be on its way.
type answered struct {
	events []string // its ids
	told   func(context.Context)
}

func newLoops() *loops { return &loops{byAgent: map[string]*loop{}} }

// of returns an agent's loop and creates it if needed. The caller holds the lock.
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

// asks records that an agent sends another request. explicit means that the agent will use
// /v1/ack.
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

// answered records the items that an agent was sent.
func (l *loops) answered(agent string, a answered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of(agent)
	one.answers = append(one.answers, a)
	one.answers = slices.Delete(one.answers, 0, max(0, len(one.answers)-maxAnswers))
}

// acknowledges records that an agent has the answers to events, and returns how many of
// them are known.
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
