package aggregator

import (
	"maps"
	"sync"
	"time"
)

// allowedAgents bounds the agents that an allowance counts.
const allowedAgents = 10_000

// An allowance counts what agents store through this broker, so that an agent that stores without
// end takes no room from the others.
type allowance struct {
	most int64         // bytes of one agent
	per  time.Duration // within this time

	mu     sync.Mutex // guards agents
	agents map[string]usage
}

// usage is what one agent has stored since a time.
type usage struct {
	began time.Time
	bytes int64
}

// take counts bytes for an agent, and reports whether the agent may store them.
func (l *allowance) take(agent string, bytes int64, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.agents[agent]
	if now.Sub(s.began) >= l.per {
		s = usage{began: now}
	}
	if s.bytes += bytes; s.bytes > l.most {
		return false
	}
	if l.agents == nil {
		l.agents = map[string]usage{}
	}
	if !known && len(l.agents) >= allowedAgents {
		l.evict(now)
	}
	l.agents[agent] = s
	return true
}

// refund subtracts bytes that were counted for an agent but not stored.
func (l *allowance) refund(agent string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, known := l.agents[agent]; known {
		s.bytes = max(0, s.bytes-bytes)
		l.agents[agent] = s
	}
}

// evict removes the agents whose time is over, or else the agent that has stored least. A client
// that uses many names once each therefore cannot displace other agents.
func (l *allowance) evict(now time.Time) {
	maps.DeleteFunc(l.agents, func(_ string, s usage) bool { return now.Sub(s.began) >= l.per })
	if len(l.agents) < allowedAgents {
		return
	}
	least := ""
	for agent, s := range l.agents {
		if least == "" || s.bytes < l.agents[least].bytes {
			least = agent
		}
	}
	delete(l.agents, least)
}
