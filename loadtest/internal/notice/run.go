package notice

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

// Losses returns the names of the losses.
func Losses() []string {
	var names []string
	for _, l := range losses() {
		names = append(names, l.name)
	}
	return names
}

// Run causes each loss several times, in a fabric of its own.
func Run(ctx context.Context, o bench.Options) (*report.Document, error) {
	d := &report.Document{Notes: notes()}
	var parts []bench.Part
	for _, l := range losses() {
		parts = append(parts, bench.Part{Name: l.name, Run: func(ctx context.Context) error {
			samples, err := lose(ctx, &o, l)
			if err == nil || ctx.Err() != nil && len(samples) > 0 {
				judge(&o, d, l, samples)
			}
			return err
		}})
	}
	return d, o.Run(ctx, d, parts)
}

// lose causes one loss. An interrupted run returns the samples until then.
func lose(ctx context.Context, o *bench.Options, l loss) (samples []sample, err error) {
	s, err := open(ctx, o, l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for n := range o.Times(10, 2) {
		if err := s.ready(ctx); err != nil {
			return samples, err
		}
		got, err := l.happen(s, ctx)
		if err != nil {
			return samples, fmt.Errorf("%s: %w", l.title, err)
		}
		samples = append(samples, got)
		o.Say("%s: %d of %d", l.title, n+1, o.Times(10, 2))
	}
	return samples, nil
}

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
