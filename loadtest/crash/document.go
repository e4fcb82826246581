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
	r.Title = fmt.Sprintf("%d messages for %d agents in %v, while processes are killed", r.Asked, r.Agents, r.For)
	r.Checks = r.Findings.Checks(1)
	if !r.Findings.Early {
		r.Checks = append(r.Checks,
			result.Check{Name: "the planned number of messages was accepted", Seen: int64(r.Findings.Accepted), Least: int64(r.Asked)},
			pending(r.Pending))
	}
	r.Checks = append(r.Checks, result.Check{Name: "no call got a wrong verdict", Seen: r.Calls.Asked, Least: 1, Wrong: r.Calls.Wrong})
	if r.Calls.Why != "" {
		last := &r.Checks[len(r.Checks)-1]
		last.Examples = append(last.Examples, r.Calls.Why)
	}
	logs := result.Check{Name: "every log line can be read, except those that a kill cut off", Seen: 1}
	if !r.legible() {
		logs.Fail(fmt.Sprintf("%d lines cannot", r.Torn))
	}
	r.Checks = append(r.Checks, logs)
	for _, f := range []struct {
		name string
		took schema.Duration
	}{
		{"delivery of a message, p50", r.Wait.P50}, {"delivery of a message, p99", r.Wait.P99},
		{"delivery of a message, longest", r.Wait.Most}, {"time from the end of the load until all messages were delivered", r.Drained},
		{"longest call", r.Calls.Longest},
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
		fmt.Sprintf("%d messages arrived twice because a shim was killed between delivery and acknowledgement. This is allowed.", r.Findings.Excused.Count),
		fmt.Sprintf("%d calls ended without a verdict; calls of killed processes do not count.", r.Calls.Unanswered),
		fmt.Sprintf("%d answers arrived after their calls had ended, and do not count.", r.Calls.Late))
}

// pending is the check of what the fabric still held in the end; a negative
// number of injections is a fabric that did not say.
func pending(n int) result.Check {
	c := result.Check{Name: "the queue is empty at the end", Seen: 1}
	switch {
	case n > 0:
		c.Wrong, c.Examples = int64(n), []string{fmt.Sprintf("%d messages are left", n)}
	case n < 0:
		c.Fail("the broker did not answer")
	}
	return c
}
