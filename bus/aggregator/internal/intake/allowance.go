package intake

import (
	"maps"
	"sync"
	"time"
)

// allowedAgents bounds the agents that an allowance counts.
const allowedAgents = 10_000

// An Allowance counts what agents store through this broker, so that an agent that stores without
// end takes no room from the others.
type Allowance struct {
	Most int64         // bytes of one agent
	Per  time.Duration // within this time

	mu     sync.Mutex // guards agents
	agents map[string]usage
}

// usage is what one agent has stored since a time.
type usage struct {
	began time.Time
	bytes int64
}

// Take counts bytes for an agent, and reports whether the agent may store them.
func (l *Allowance) Take(agent string, bytes int64, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.agents[agent]
	if now.Sub(s.began) >= l.Per {
		s = usage{began: now}
	}
	if s.bytes += bytes; s.bytes > l.Most {
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

// Refund subtracts bytes that were counted for an agent but not stored.
func (l *Allowance) Refund(agent string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, known := l.agents[agent]; known {
		s.bytes = max(0, s.bytes-bytes)
		l.agents[agent] = s
	}
}

// evict removes the agents whose time is over, or else the agent that has stored least. A client
// that uses many names once each therefore cannot displace other agents.
func (l *Allowance) evict(now time.Time) {
	maps.DeleteFunc(l.agents, func(_ string, s usage) bool { return now.Sub(s.began) >= l.Per })
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
