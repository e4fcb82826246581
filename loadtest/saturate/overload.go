package saturate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/chaos"
	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/load"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
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
func Overload(ctx context.Context, s *scenario.Scenario, st fleet.Stage) (*result.Document, error) {
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

func (x *site) overload(ctx context.Context) (*result.Document, error) {
	s := *x.scenario
	var found result.Document
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
	s.Rate, s.Think, s.Steps = 0, 0, phases(rate, long)
	s.For = schema.Duration(s.Steps.Long())
	fmt.Fprintf(x.stage.Progress, "%.0f tool calls per second for %v, with %.0f before and after\n", rate, long, rate*easy/much)
	m, err := x.session.Load(ctx, &s)
	if err != nil {
		return nil, err
	}
	d, err := m.Document()
	if err != nil {
		return nil, err
	}
	d.Title = fmt.Sprintf("%d agents on %d connections: %.0f tool calls per second for %v, and %.0f before and after",
		s.Agents, s.Connections, rate, long, rate*easy/much)
	if m.Early {
		return d, nil // the load, or the time after it, was cut short
	}
	if err := x.judge(d, m, long); err != nil {
		return nil, err
	}
	for _, c := range x.checks.Checks {
		d.Check(c.Name).Add(c)
	}
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
func (x *site) judge(d *result.Document, m *fleet.Measured, long time.Duration) error {
	before, err := m.Total(0, calm)
	if err != nil {
		return err
	}
	during, err := m.Total(calm, calm+long)
	if err != nil {
		return err
	}
	asked := d.Check("before the overload every call was answered")
	asked.Seen += before.Offered
	for range before.Failed + before.Unsent {
		asked.Fail("a call before the overload")
	}
	back, err := recovery(m, calm+long, chaos.Felt(before.Latency.At(0.99)))
	if err != nil {
		return err
	}
	keeps := (&search{scenario: x.scenario, base: before.Latency.At(0.99)}).keeps(during)
	shown(d, keeps)
	_, earlier, err := stretched(m, 0, calm)
	if err != nil {
		return err
	}
	rates, p99s, err := stretched(m, calm, calm+long)
	if err != nil {
		return err
	}
	d.Figures = []result.Figure{
		recovered(back, keeps),
		result.Figured("events answered while overloaded", "/s", result.Higher, rates),
		result.Figured("p99 before", "s", result.Lower, earlier),
		result.Figured("p99 while overloaded", "s", result.Lower, p99s),
	}
	if most := memory(m); most > 0 {
		d.Figures = append(d.Figures, result.Figured("memory of a broker at most", "B", result.Lower, []float64{most}).Within(memoryMost))
	}
	for i := range d.Plots {
		d.Plots[i].Marks = append(d.Plots[i].Marks, result.Mark{X: calm.Seconds(), Until: (calm + long).Seconds(), Label: "overload"})
	}
	return nil
}

// stretched returns the events answered per second, and p99, of periods of a load in whole
// seconds. Comparisons with other runs need several samples.
func stretched(m *fleet.Measured, from, until time.Duration) (rates, p99s []float64, err error) {
	const most = 10
	seconds := int((until - from) / time.Second)
	n := min(most, seconds)
	for i := range n {
		first, last := seconds*i/n, seconds*(i+1)/n
		begin, end := from+time.Duration(first)*time.Second, from+time.Duration(last)*time.Second
		k, err := m.Total(begin, end)
		if err != nil {
			return nil, nil, err
		}
		rates = append(rates, float64(k.Answered)/(end-begin).Seconds())
		if k.Latency.Count() > 0 {
			p99s = append(p99s, k.Latency.At(0.99))
		}
	}
	return rates, p99s, nil
}

// shown adds a note if the fabric kept up with the load: such a run does not show an
// overload.
func shown(d *result.Document, keeps bool) {
	if !keeps {
		return
	}
	d.Notes = append(d.Notes, "CAREFUL: the fabric kept up with this rate, so the run shows no overload. Write a higher --rate, or leave it out to search for the knee.")
}

// recovered returns the figure of the recovery. If the fabric kept up with the load, the
// figure has no budget: slow calls afterwards had another cause.
func recovered(after float64, keeps bool) result.Figure {
	f := result.Figured("recovery", "s", result.Lower, []float64{after})
	if keeps {
		return f
	}
	return f.Within(backIn)
}

// recovery returns after how many seconds p99 is within its bound and stays there.
func recovery(m *fleet.Measured, end time.Duration, bound float64) (float64, error) {
	last := end + restful
	for at := last; at > end; at -= time.Second {
		k, err := m.Total(at-time.Second, at)
		if err != nil {
			return 0, err
		}
		// A second without due calls does not show a recovery.
		if k.Offered == 0 || k.Latency.At(0.99) > bound || k.Failed > 0 || k.Unsent > 0 {
			return (at - end).Seconds(), nil
		}
	}
	return 0, nil
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
