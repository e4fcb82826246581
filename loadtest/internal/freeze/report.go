package freeze

import (
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// The checks.
const (
	answered = "every call was answered"
	refused  = "no call passed that began after all brokers confirmed the freeze"
	passed   = "no call was refused that began after all brokers confirmed the thaw"
)

// budget is the longest time until a freeze has reached every shim.
const budget = time.Second

// times are those of a change, from its request.
type times struct {
	// first is when it affected the first answer, every when each shim had such an answer.
	// last is the last other answer to a call that began after the request; 0: none.
	first, every, last time.Duration
	confirmed          time.Duration
}

// timed returns the times of a change. Calls after a freeze are refused, after a thaw not.
func timed(c *change, refused bool) (t times) {
	seen := map[int]bool{}
	byAnswer := slices.SortedFunc(slices.Values(c.calls), func(a, b call) int { return a.answered.Compare(b.answered) })
	for _, one := range byAnswer {
		after := one.answered.Sub(c.began)
		switch {
		case one.err != nil || after < 0:
		case one.refused != refused && one.asked.After(c.began):
			t.last = after
		case one.refused == refused && !seen[one.shim]:
			if seen[one.shim] = true; t.first == 0 {
				t.first = after
			}
			t.every = after
		}
	}
	t.confirmed = c.done.Sub(c.began)
	return t
}

// document returns the report of the samples.
func document(shims int, samples []sample) *report.Document {
	d := &report.Document{Notes: notes(shims, samples)}
	for _, name := range []string{answered, refused, passed} {
		d.Check(name).Least = 1
	}
	var freezes, thaws []times
	for i := range samples {
		s := &samples[i]
		freezes, thaws = append(freezes, timed(&s.freeze, true)), append(thaws, timed(&s.thaw, false))
		judge(d, refused, &s.freeze, true)
		judge(d, passed, &s.thaw, false)
	}
	add := func(name string, of []times, budget time.Duration, pick func(times) time.Duration) {
		var all []float64
		for _, one := range of {
			all = append(all, pick(one).Seconds())
		}
		f := report.Figured(name, "s", report.Lower, all)
		if slices.Min(all) > 0 { // 0: no call was late
			if budget > 0 {
				f = f.Within(budget.Seconds())
			}
			d.Figures = append(d.Figures, f)
		}
	}
	first, each := func(t times) time.Duration { return t.first }, func(t times) time.Duration { return t.every }
	last, confirmed := func(t times) time.Duration { return t.last }, func(t times) time.Duration { return t.confirmed }
	add("the first call is refused", freezes, budget, first)
	add("the last call passes", freezes, budget, last)
	add(fmt.Sprintf("each of %d shims had a refused call, with one call per %v", shims, every), freezes, budget, each)
	add("every broker has confirmed the freeze", freezes, budget, confirmed)
	add("the last call is refused after a thaw", thaws, 0, last)
	add("every broker has confirmed the thaw", thaws, 0, confirmed)
	return d
}

// judge checks the answers of a change.
func judge(d *report.Document, promise string, c *change, refused bool) {
	for _, one := range c.calls {
		d.Check(answered).Seen++
		if one.err != nil {
			d.Check(answered).Fail(one.err.Error())
			continue
		}
		if one.asked.After(c.done) {
			if d.Check(promise).Seen++; one.refused != refused {
				d.Check(promise).Fail(fmt.Sprintf("of shim %d, %v later", one.shim, one.asked.Sub(c.done)))
			}
		}
	}
}

// notes explain the figures.
func notes(shims int, samples []sample) []string {
	brokers := 0
	for _, s := range samples {
		brokers = max(brokers, s.freeze.brokers)
	}
	return []string{
		fmt.Sprintf("%d shims, each with its own connection, make one call per %v at evenly spread times. %d brokers answer on one NATS server that syncs every write.", shims, every, brokers),
		"Times start just before the operator sends its request. Shims and operator share one process and one clock.",
		"A shim learns of a freeze from the answer to its next call. So the time until each had a refused call is at least the interval between two calls.",
	}
}
