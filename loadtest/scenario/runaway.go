package scenario

import (
	"math"

	"github.com/hookfabric/hookfabric/loadtest/field"
)

// A Runaway is agents that ask far more often than one agent may, beside all others. The
// zero Runaway is none.
type Runaway struct {
	Agents int `json:"agents,omitzero"`
	// Limit is how many events a second a broker judges for one agent. The others must
	// not come near it.
	Limit float64 `json:"limit,omitzero" as:"rate"`
	// Times is how many times as often each of these asks.
	Times float64 `json:"times,omitzero"`
}

const (
	// usualTimes is how many times it is unless the scenario says.
	usualTimes = 50
	// mostRunaway is how many events a second all of them together may ask about.
	mostRunaway = 100_000
	// far is how many times as much as the others need the limit is at least: what is
	// random comes close together at times.
	far = 5
)

// Rate is what brokers are to be started with; 0: no limit.
func (a Runaway) Rate() float64 {
	if a.Agents == 0 {
		return 0
	}
	return a.Limit
}

// Burst is how many events may come at once, as brokers have it unless they are told.
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
