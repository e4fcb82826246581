package crash

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/schema"
)

// document fills in what others read of the report, when all else is in it.
func (r *Report) document() {
	r.Title = fmt.Sprintf("%d injections for %d agents in %v, while processes are killed", r.Asked, r.Agents, r.For)
	r.Checks = r.Findings.Checks(1)
	if !r.Findings.Early {
		r.Checks = append(r.Checks,
			result.Check{Name: "as many injections were accepted as were to be", Seen: int64(r.Findings.Accepted), Least: int64(r.Asked)},
			pending(r.Pending))
	}
	r.Checks = append(r.Checks, result.Check{Name: "no call got a verdict that must not be", Seen: r.Calls.Asked, Least: 1, Wrong: r.Calls.Wrong})
	if r.Calls.Why != "" {
		last := &r.Checks[len(r.Checks)-1]
		last.Examples = append(last.Examples, r.Calls.Why)
	}
	logs := result.Check{Name: "all that was logged can be read, but for what somebody was killed in the middle of", Seen: 1}
	if !r.legible() {
		logs.Fail(fmt.Sprintf("%d lines can not", r.Torn))
	}
	r.Checks = append(r.Checks, logs)
	for _, f := range []struct {
		name string
		took schema.Duration
	}{
		{"an injection's way, p50", r.Wait.P50}, {"an injection's way, p99", r.Wait.P99},
		{"an injection's way, the longest", r.Wait.Most}, {"until all was handed over after the load", r.Drained},
		{"a call, the longest", r.Calls.Longest},
	} {
		v := f.took.Std().Seconds()
		r.Figures = append(r.Figures, result.Figure{Name: f.name, Unit: "s", Better: result.Neither, Value: v, Low: v, High: v})
	}
	killed := result.Table{Title: "killed", Columns: []string{"process", "times"}}
	for _, kind := range slices.Sorted(maps.Keys(r.Killed)) {
		killed.Rows = append(killed.Rows, []string{kind, fmt.Sprint(r.Killed[kind])})
	}
	r.Tables = append(r.Tables, killed)
	r.Notes = append(r.Notes,
		fmt.Sprintf("%d injections came twice because a shim was killed between handing them over and acknowledging them: that is allowed.", r.Findings.Excused.Count),
		fmt.Sprintf("%d calls ended without a verdict; those that a kill took along are not counted.", r.Calls.Unanswered))
}

// pending is the check of what the fabric still held in the end; a negative
// number of injections is a fabric that did not say.
func pending(n int) result.Check {
	c := result.Check{Name: "the fabric holds nothing in the end", Seen: 1}
	switch {
	case n > 0:
		c.Wrong, c.Examples = int64(n), []string{fmt.Sprintf("it holds %d", n)}
	case n < 0:
		c.Fail("it did not say")
	}
	return c
}
