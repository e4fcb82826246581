package load

import (
	"math/rand/v2"
	"time"
)

// A Law says how the moments of an agent's calls lie.
type Law string

const (
	// Poisson moments lie at random, as those of agents do that know nothing of each other.
	Poisson Law = "poisson"
	// Constant ones are always as far apart as the rate says.
	Constant Law = "constant"
)

// Arrivals are the moments at which one of several agents calls. All agents
// together follow the curve.
type Arrivals struct {
	curve  Curve
	law    Law
	agents float64
	random *rand.Rand
	due    float64 // calls of all agents when this one called last
}

// NewArrivals are those of one agent of so many. The same seed gives the same moments.
func NewArrivals(c Curve, l Law, agents int, random *rand.Rand) *Arrivals {
	a := &Arrivals{curve: c, law: l, agents: float64(agents), random: random}
	if l == Constant {
		// Agents that are all alike would call all at once.
		a.due = (random.Float64() - 1) * a.agents
	}
	return a
}

// Next is the next moment, from the beginning; not ok: there is none any more.
func (a *Arrivals) Next() (moment time.Duration, ok bool) {
	step := a.agents
	if a.law != Constant {
		step *= a.random.ExpFloat64()
	}
	a.due += step
	return a.curve.When(a.due)
}
