package load

import (
	"math"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A Step is a period with a rate.
type Step struct {
	// For is how long it lasts.
	For schema.Duration `json:"for"`
	// Rate is how many calls are due per second at its beginning, and To at its end. In
	// between the rate changes evenly.
	Rate float64 `json:"rate" as:"rate"`
	To   float64 `json:"to"   as:"rate"`
}

// calls returns how many calls are due in the first given seconds of the step.
func (s Step) calls(seconds float64) float64 {
	return s.Rate*seconds + s.slope()*seconds*seconds/2
}

func (s Step) slope() float64 {
	if s.To == s.Rate {
		return 0
	}
	return (s.To - s.Rate) / s.For.Std().Seconds()
}

// when returns after how many seconds of the step the given number of calls was due.
func (s Step) when(calls float64) float64 {
	a, b := s.slope()/2, s.Rate
	if root := b + math.Sqrt(max(b*b+4*a*calls, 0)); root > 0 {
		return 2 * calls / root
	}
	return 0
}

// A Curve is the number of due calls over time: one step after the other.
type Curve []Step

// Steady returns the curve of one rate.
func Steady(rate float64, long time.Duration) Curve {
	return Curve{{For: schema.Duration(long), Rate: rate, To: rate}}
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
			return s.Rate + s.slope()*moment.Seconds()
		}
		moment -= s.For.Std()
	}
	return 0
}

// Calls returns the number of all due calls.
func (c Curve) Calls() float64 {
	all := 0.0
	for _, s := range c {
		all += s.calls(s.For.Std().Seconds())
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
		if s.For.Std() > long {
			s.To = s.Rate + s.slope()*long.Seconds()
			s.For = schema.Duration(long)
		}
		first = append(first, s)
		long -= s.For.Std()
	}
	return first
}

// When returns the moment, from the beginning, at which the given number of calls was due.
// ok is false if the curve has fewer calls.
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
