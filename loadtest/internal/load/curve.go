package load

import (
	"math/rand/v2"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A Step is a period with a constant rate of calls per second.
type Step struct {
	For  schema.Duration `json:"for"`
	Rate float64         `json:"rate"`
}

// calls returns how many calls are due in the step.
func (s Step) calls() float64 { return s.Rate * s.For.Std().Seconds() }

// A Curve is the number of due calls over time: one step after the other.
type Curve []Step

// Steady returns the curve of one rate.
func Steady(rate float64, long time.Duration) Curve {
	return Curve{{For: schema.Duration(long), Rate: rate}}
}

// Long returns how long the curve lasts.
func (c Curve) Long() time.Duration {
	var all time.Duration
	for _, s := range c {
		all += s.For.Std()
	}
	return all
}

// Rate returns how many calls per second are due at a moment, from the beginning.
func (c Curve) Rate(moment time.Duration) float64 {
	for _, s := range c {
		if moment >= 0 && moment < s.For.Std() {
			return s.Rate
		}
		moment -= s.For.Std()
	}
	return 0
}

// Calls returns the number of all due calls.
func (c Curve) Calls() float64 {
	all := 0.0
	for _, s := range c {
		all += s.calls()
	}
	return all
}

// Until returns the beginning of the curve, at most of the given length.
func (c Curve) Until(long time.Duration) Curve {
	var first Curve
	for _, s := range c {
		if long <= 0 {
			break
		}
		s.For = min(s.For, schema.Duration(long))
		first = append(first, s)
		long -= s.For.Std()
	}
	return first
}

// When returns the moment, from the beginning, at which the given number of calls was due.
// ok is false if the curve has fewer calls.
func (c Curve) When(calls float64) (moment time.Duration, ok bool) {
	for _, s := range c {
		if calls < s.calls() {
			return moment + time.Duration(max(calls, 0)/s.Rate*float64(time.Second)), true
		}
		calls -= s.calls()
		moment += s.For.Std()
	}
	return moment, false
}

// Arrivals are the times of one agent's calls, at random, as from independent agents
// (Poisson). All agents together follow the curve.
type Arrivals struct {
	curve  Curve
	agents float64
	random *rand.Rand
	due    float64 // the number of all agents' calls at this agent's last one
}

// NewArrivals returns the arrivals of one of the given number of agents. The same seed
// gives the same times.
func NewArrivals(c Curve, agents int, random *rand.Rand) *Arrivals {
	return &Arrivals{curve: c, agents: float64(agents), random: random}
}

// Next returns the next moment, from the beginning of the load. ok is false after the last
// one.
func (a *Arrivals) Next() (moment time.Duration, ok bool) {
	a.due += a.agents * a.random.ExpFloat64()
	return a.curve.When(a.due)
}
