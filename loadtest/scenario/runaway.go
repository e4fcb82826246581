package scenario

import (
	"math"

	"github.com/hookfabric/hookfabric/loadtest/field"
)

// A Runaway adds agents that ask far more often than one agent may. The zero Runaway adds
// no agents.
type Runaway struct {
	Agents int `json:"agents,omitzero"`
	// Limit is how many events a second a broker judges for one agent. The other agents
	// must stay far below it.
	Limit float64 `json:"limit,omitzero" as:"rate"`
	// Times is the rate of each of these agents, as a multiple of Limit.
	Times float64 `json:"times,omitzero"`
}

const (
	// usualTimes is the default of Times.
	usualTimes = 50
	// mostRunaway is the highest number of events a second of all runaway agents together.
	mostRunaway = 100_000
	// far is the lowest ratio of the limit to the average rate of the other agents: random
	// calls are sometimes close together.
	far = 5
)

// Rate returns the rate limit that brokers are started with; 0: no limit.
func (a Runaway) Rate() float64 {
	if a.Agents == 0 {
		return 0
	}
	return a.Limit
}

// Burst returns how many events may come at once. It is the default of brokers.
func (a Runaway) Burst() int { return max(20, int(math.Ceil(2*a.Limit))) }

func (s *Scenario) checkRunaway(say saying) {
	a := s.Runaway
	if a.Agents == 0 {
		return
	}
	uses := 2 * s.PerSecond() / float64(max(s.Agents, 1)) // before the tool and after it
	switch {
	case a.Agents < 0 || a.Agents > s.Agents:
		say("runaway", "write at least 1 and at most the number of other agents", "%d runaway agents are out of range", a.Agents)
	case !(a.Limit >= 1 && a.Limit >= far*uses):
		say("runaway", "write a higher limit, or a lower rate", "the other agents send %.4g events per second each, so a limit of %v would also refuse theirs", uses, a.Limit)
	case !(a.Times > 1 && float64(a.Agents)*a.Limit*a.Times <= mostRunaway):
		say("runaway", "write times: 50", "%d agents cannot send %v times the limit of %v events per second", a.Agents, a.Times, a.Limit)
	case s.Fabric.Kind == field.External:
		say("runaway", "leave it out, or write kind: local", "the limits of an external fabric cannot be changed")
	}
}
