package freeze

import (
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// What must be so, however long it takes.
const (
	answered = "every call was answered"
	refused  = "no call passed that was asked when all brokers had confirmed the freeze"
	passed   = "no call was refused that was asked when all brokers had confirmed the thaw"
)

// budget is within what time a freeze must have reached everybody.
const budget = time.Second

// times is how long a change took, from when it was asked for.
type times struct {
	// first is when the first call was answered by it, and every when each shim had one;
	// they have to ask first. last is when the last call was answered otherwise that was
	// asked after it began; 0: none was.
	first, every, last time.Duration
	confirmed          time.Duration
}

// timed reads a change's times. Calls after a freeze are refused, after a thaw not.
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

// document is what the samples come to.
func document(o *Options, samples []sample) *result.Document {
	d := &result.Document{Notes: notes(o, samples)}
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
	t := result.Table{Title: "How long a freeze takes", Columns: []string{"from the operator's request until", "median", "longest"}}
	add := func(name string, of []times, budget time.Duration, pick func(times) time.Duration) {
		var all []float64
		for _, one := range of {
			all = append(all, pick(one).Seconds())
		}
		f := result.Figured(name, "s", result.Lower, all)
		if slices.Min(all) > 0 { // where no call was late there is nothing to compare
			if budget > 0 {
				f = f.Within(budget.Seconds())
			}
			d.Figures = append(d.Figures, f)
		}
		t.Rows = append(t.Rows, []string{name, units.Value(f.Value, "s"), units.Value(slices.Max(all), "s")})
	}
	first, every := func(t times) time.Duration { return t.first }, func(t times) time.Duration { return t.every }
	last, confirmed := func(t times) time.Duration { return t.last }, func(t times) time.Duration { return t.confirmed }
	add("the first call is refused", freezes, budget, first)
	add("the last call passes that was asked after it", freezes, budget, last)
	add(fmt.Sprintf("each of %d shims had a call refused, of which each makes one every %v", o.Shims, o.Every), freezes, budget, every)
	add("every broker has confirmed the freeze", freezes, budget, confirmed)
	add("the last call is refused that was asked after a thaw", thaws, 0, last)
	add("every broker has confirmed the thaw", thaws, 0, confirmed)
	d.Tables = []result.Table{t}
	return d
}

// judge holds what was answered against what had to be.
func judge(d *result.Document, promise string, c *change, refused bool) {
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

// notes are what a reader needs to know.
func notes(o *Options, samples []sample) []string {
	brokers := 0
	for _, s := range samples {
		brokers = max(brokers, s.freeze.brokers)
	}
	return []string{
		fmt.Sprintf("%d shims with a connection each ask every %v, at times spread evenly, and %d brokers on one NATS server answer, which syncs every write.", o.Shims, o.Every, brokers),
		"Measured from just before the operator's request is sent; shims and operator are in one process, by one clock.",
		"A shim hears of a freeze by the answer to its next call, so that the time until each had one refused is at least the time between two of its calls.",
	}
}
