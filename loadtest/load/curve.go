package load

import (
	"math"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A Step is a stretch of time with a rate.
type Step struct {
	// For is how long it lasts.
	For schema.Duration `json:"for"`
	// Rate is how many calls are due per second at its beginning, To at its end:
	// in between the rate changes evenly.
	Rate float64 `json:"rate" as:"rate"`
	To   float64 `json:"to"   as:"rate"`
}

// calls are how many are due in the first so many seconds of the step.
func (s Step) calls(seconds float64) float64 {
	return s.Rate*seconds + s.slope()*seconds*seconds/2
}

func (s Step) slope() float64 {
	if s.To == s.Rate {
		return 0
	}
	return (s.To - s.Rate) / s.For.Std().Seconds()
}

// when is after how many seconds of the step so many calls were due.
func (s Step) when(calls float64) float64 {
	a, b := s.slope()/2, s.Rate
	if root := b + math.Sqrt(max(b*b+4*a*calls, 0)); root > 0 {
		return 2 * calls / root
	}
	return 0
}

// A Curve is how many calls are due over time: one step after the other.
type Curve []Step

// Steady is the curve of one rate.
func Steady(rate float64, long time.Duration) Curve {
	return Curve{{For: schema.Duration(long), Rate: rate, To: rate}}
}

// Long is how long it lasts.
func (c Curve) Long() time.Duration {
	var all time.Duration
	for _, s := range c {
		all += s.For.Std()
	}
	return all
}

// Rate is how many calls are due per second at a moment, from the beginning.
func (c Curve) Rate(moment time.Duration) float64 {
	for _, s := range c {
		if moment >= 0 && moment < s.For.Std() {
			return s.Rate + s.slope()*moment.Seconds()
		}
		moment -= s.For.Std()
	}
	return 0
}

// Calls are how many are due in all.
func (c Curve) Calls() float64 {
	all := 0.0
	for _, s := range c {
		all += s.calls(s.For.Std().Seconds())
	}
	return all
}

// Until is the beginning of the curve, so long at most.
func (c Curve) Until(long time.Duration) Curve {
	var first Curve
	for _, s := range c {
		if long <= 0 {
			break
		}
		if s.For.Std() > long {
			s.To = s.Rate + s.slope()*long.Seconds()
			s.For = schema.Duration(long)
		}
		first = append(first, s)
		long -= s.For.Std()
	}
	return first
}

// When is the moment, from the beginning, at which so many calls were due; not ok:
// so many never are.
func (c Curve) When(calls float64) (moment time.Duration, ok bool) {
	for _, s := range c {
		mine := s.calls(s.For.Std().Seconds())
		if calls < mine {
			return moment + time.Duration(s.when(calls)*float64(time.Second)), true
		}
		calls -= mine
		moment += s.For.Std()
	}
	return moment, false
}
