package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Limits are what one agent may take of a broker. The zero Limits bound nothing.
type Limits struct {
	// Rate is the number of events per second; 0: any number.
	Rate float64
	// Burst is the number of events at once before the rate applies; 0: as many as come in two
	// seconds, at least 20.
	Burst int
	// Calls is the number of calls under way; 0: any number.
	Calls int
	// Requests is the number of control requests per second; 0: in proportion to Rate.
	Requests float64
}

const (
	// MaxRate is the highest rate that can be kept to: time has nanoseconds.
	MaxRate = 1e6
	// MinRate is the lowest: one event in about a quarter of an hour.
	MinRate = 0.001
	// MaxBurst is the largest burst.
	MaxBurst = 1_000_000
	// usualBurst is how many seconds' worth may come at once, and leastBurst how many at
	// least: a turn of an agent often begins with several calls at once.
	usualBurst, leastBurst = 2, 20
)

// Check returns an error that names the invalid limits by their flags.
func (l Limits) Check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if l.Rate != 0 && !(l.Rate >= MinRate && l.Rate <= MaxRate) {
		wrong("--agent-rate is %v events per second; use %v to %d, or 0 for no limit", l.Rate, MinRate, int(MaxRate))
	}
	if l.Burst < 0 || l.Burst > MaxBurst {
		wrong("--agent-burst is %d events; use 1 to %d, or 0 for the events of 2 seconds", l.Burst, MaxBurst)
	}
	if l.Burst > 0 && l.Rate == 0 {
		wrong("--agent-burst %d has no effect without --agent-rate; set both", l.Burst)
	}
	if l.Requests != 0 && !(l.Requests >= MinRate && l.Requests <= MaxRate) {
		wrong("--agent-requests is %v per second; use %v to %d, or 0 for ten times --agent-rate", l.Requests, MinRate, int(MaxRate))
	}
	if l.Calls < 0 {
		wrong("--agent-calls is %d; use a number of calls under way, or 0 for no limit", l.Calls)
	}
	return errors.Join(errs...)
}

// None reports whether they bound nothing.
func (l Limits) None() bool { return l.Rate == 0 && l.Calls == 0 }

// burst returns how many events may come at once.
func (l Limits) burst() int {
	if l.Burst > 0 {
		return l.Burst
	}
	return min(MaxBurst, max(leastBurst, int(math.Ceil(l.Rate*usualBurst))))
}

// interval returns the time from one event to the next at the rate, rounded up so that never more
// than the rate passes.
func (l Limits) interval() time.Duration {
	if l.Rate == 0 {
		return 0
	}
	return time.Duration(math.Ceil(float64(time.Second) / l.Rate))
}
