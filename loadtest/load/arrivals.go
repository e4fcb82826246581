package load

import (
	"math/rand/v2"
	"time"
)

// A Law is the distribution of an agent's calls over time.
type Law string

const (
	// Poisson calls come at random, as from independent agents.
	Poisson Law = "poisson"
	// Constant calls come at equal intervals, as the rate says.
	Constant Law = "constant"
)

// Arrivals are the times of one agent's calls. All agents together follow the curve.
type Arrivals struct {
	curve  Curve
	law    Law
	agents float64
	random *rand.Rand
	due    float64 // the number of all agents' calls at this agent's last one
}

// NewArrivals returns the arrivals of one of the given number of agents. The same seed
// gives the same times.
func NewArrivals(c Curve, l Law, agents int, random *rand.Rand) *Arrivals {
	a := &Arrivals{curve: c, law: l, agents: float64(agents), random: random}
	if l == Constant {
		// Without a random start, all agents would call at once.
		a.due = (random.Float64() - 1) * a.agents
	}
	return a
}

// Next returns the next moment, from the beginning of the load. ok is false after the last
// one.
func (a *Arrivals) Next() (moment time.Duration, ok bool) {
	step := a.agents
	if a.law != Constant {
		step *= a.random.ExpFloat64()
	}
	a.due += step
	return a.curve.When(a.due)
}
