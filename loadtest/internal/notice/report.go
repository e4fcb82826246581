package notice

import (
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

// The checks.
const (
	answered = "every call was answered by its hook"
	guarded  = "no guarded call was allowed"
	begun    = "every hook of a lost process started again in another process"
)

// judge adds the checks and the figure of a loss.
func judge(o *bench.Options, d *report.Document, l loss, samples []sample) {
	var took []float64
	for _, s := range samples {
		d.Check(begun).Seen++
		if s.noticed > 0 {
			took = append(took, s.noticed.Seconds())
		} else {
			d.Check(begun).Fail(l.title)
		}
		for _, a := range s.answers {
			look(d, l, a)
		}
	}
	for _, name := range []string{answered, guarded, begun} {
		d.Check(name).Least = 1
	}
	if len(took) == 0 {
		return
	}
	d.Figures = append(d.Figures, o.Within(report.Figured("noticing "+l.title, "s", report.Lower, took), l.budget.Seconds()))
}

// look checks an answer. The hook denies every call, so a call that is not denied passed
// without its guard. A denial because the hook is lost has another reason.
func look(d *report.Document, l loss, a answer) {
	d.Check(answered).Seen++
	d.Check(guarded).Seen++
	switch {
	case a.err != nil:
		d.Check(answered).Fail(fmt.Sprintf("%s: %v", l.title, a.err))
	case a.verdict.Decision != schema.Deny:
		d.Check(guarded).Fail(fmt.Sprintf("%s: %s, %q", l.title, a.verdict.Decision, a.verdict.HookErrors))
	case a.verdict.Reason != refused:
		d.Check(answered).Fail(fmt.Sprintf("%s: refused because of %q", l.title, a.verdict.Reason))
	}
}

// notes explain the figures.
func notes() []string {
	return []string{
		"Measured from just before the signal until another process starts the hook again, by the clock of the same machine.",
		fmt.Sprintf("Workers and aggregators send a heartbeat every %v; after %d missed ones they count as lost.", schema.BeatEvery, schema.Missed),
		"The loss happens at a random time within one heartbeat after the start of the hook.",
		fmt.Sprintf("When an aggregator is lost, %d calls are in progress in two aggregators. The last one of the lost aggregator to start again counts.", together),
	}
}
