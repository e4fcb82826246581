package saturate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/chaos"
	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// calm is the duration of the easy load before the overload. restful is that after it.
	calm    = 5 * time.Second
	restful = 20 * time.Second
	// easy is the rate of the easy load, and much that of the overload, as multiples of the
	// knee.
	easy = 0.5
	much = 2
	// backIn is the budget of the recovery, in seconds.
	backIn = 10
	// memoryMost is the memory limit of all programs of the fabric, and a quarter more for
	// memory that the runtime does not count.
	memoryMost = 5 << 28
)

// Overload offers twice the rate that the fabric keeps up with, and measures the recovery.
func Overload(ctx context.Context, s *scenario.Scenario, st fleet.Stage) (*report.Document, error) {
	x, err := open(ctx, s, st)
	if err != nil {
		return nil, err
	}
	d, err := x.overload(ctx)
	if err = errors.Join(err, x.session.Close()); err != nil {
		return nil, err
	}
	return d, nil
}

func (x *site) overload(ctx context.Context) (*report.Document, error) {
	s := *x.scenario
	var found report.Document
	rate := s.Rate
	if rate == 0 {
		at, err := x.knee(ctx)
		if err != nil {
			return nil, err
		}
		at.document(&found, false)
		rate = at.knee * much
	}
	long := s.For.Std()
	s.Rate, s.Steps = 0, phases(rate, long)
	s.For = schema.Duration(s.Steps.Long())
	fmt.Fprintf(x.stage.Live, "%.0f tool calls per second for %v, with %.0f before and after\n", rate, long, rate*easy/much)
	m, err := x.session.Load(ctx, &s)
	if err != nil {
		return nil, err
	}
	d := m.Document()
	d.Title = fmt.Sprintf("%d agents on %d connections: %.0f tool calls per second for %v, and %.0f before and after",
		s.Agents, s.Connections, rate, long, rate*easy/much)
	if m.Early {
		return d, nil // the load, or the time after it, was cut short
	}
	x.judge(d, m, long)
	d.Merge(x.checks.Checks)
	d.Figures = append(d.Figures, found.Figures...)
	d.Tables = append(d.Tables, found.Tables...)
	d.Plots = append(d.Plots, found.Plots...)
	d.Notes = append(d.Notes, found.Notes...)
	return d, nil
}

// phases returns a curve of an easy load, an overload, and the easy load again.
func phases(rate float64, long time.Duration) load.Curve {
	of := func(rate float64, long time.Duration) load.Step { return load.Steady(rate, long)[0] }
	return load.Curve{of(rate*easy/much, calm), of(rate, long), of(rate*easy/much, restful)}
}

// judge replaces the figures of an even load by those of an overload.
func (x *site) judge(d *report.Document, m *fleet.Measured, long time.Duration) {
	before, during := m.Total(0, calm), m.Total(calm, calm+long)
	asked := d.Check("before the overload every call was answered")
	asked.Seen += before.Offered
	for range before.Missed() {
		asked.Fail("a call before the overload")
	}
	keeps := (&search{scenario: x.scenario, base: before.Latency.At(0.99)}).keeps(during)
	shown(d, keeps)
	var rates []float64
	for _, s := range m.Stretches(calm, calm+long) {
		rates = append(rates, s.Rate())
	}
	d.Figures = []report.Figure{
		recovered(recovery(m, calm+long, chaos.Felt(before.Latency.At(0.99))), keeps),
		report.Figured("events answered while overloaded", "/s", report.Higher, rates),
		report.Figured("p99 before", "s", report.Lower, p99s(m.Stretches(0, calm))),
		report.Figured("p99 while overloaded", "s", report.Lower, p99s(m.Stretches(calm, calm+long))),
	}
	if most := memory(m); most > 0 {
		d.Figures = append(d.Figures, report.Figured("memory of a broker at most", "B", report.Lower, []float64{most}).Within(memoryMost))
	}
	for i := range d.Plots {
		d.Plots[i].Marks = append(d.Plots[i].Marks, report.Mark{X: calm.Seconds(), Until: (calm + long).Seconds(), Label: "overload"})
	}
}

// p99s returns the p99 of each stretch with calls.
func p99s(all []fleet.Stretch) (p99s []float64) {
	for _, s := range all {
		if s.Latency.Count() > 0 {
			p99s = append(p99s, s.Latency.At(0.99))
		}
	}
	return p99s
}

// shown adds a note if the fabric kept up with the load: such a run does not show an
// overload.
func shown(d *report.Document, keeps bool) {
	if !keeps {
		return
	}
	d.Notes = append(d.Notes, "CAREFUL: the fabric kept up with this rate, so the run shows no overload. Write a higher --rate, or leave it out to search for the knee.")
}

// recovered returns the figure of the recovery. If the fabric kept up with the load, the
// figure has no budget: slow calls afterwards had another cause.
func recovered(after float64, keeps bool) report.Figure {
	f := report.Figured("recovery", "s", report.Lower, []float64{after})
	if keeps {
		return f
	}
	return f.Within(backIn)
}

// recovery returns after how many seconds p99 is within its bound and stays there.
func recovery(m *fleet.Measured, end time.Duration, bound float64) float64 {
	last := end + restful
	for at := last; at > end; at -= time.Second {
		k := m.Total(at-time.Second, at)
		// A second without due calls does not show a recovery.
		if k.Offered == 0 || k.Latency.At(0.99) > bound || k.Missed() > 0 {
			return (at - end).Seconds()
		}
	}
	return 0
}

// memory returns the largest memory of a broker; 0: unknown, because the run did not start it.
func memory(m *fleet.Measured) float64 {
	most := uint64(0)
	for _, s := range m.Samples {
		for name, u := range s.Members {
			if strings.HasPrefix(name, "broker-") {
				most = max(most, u.Peak)
			}
		}
	}
	return float64(most)
}
