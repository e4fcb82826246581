package saturate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
)

const (
	// faster is the factor by which the rate grows until the fabric does not keep up.
	faster = 2
	// near is the ratio of the lowest rate that is too high to the knee at which the search
	// ends.
	near = 1.06
	// firsts is how often the first rate is measured, because all others are compared with
	// it.
	firsts = 3
	// agree is how many measurements of a rate must agree. At most twice as many, less one,
	// are made. A single one may be luck, or disturbed by other load on the machine.
	agree = 2
	// breath is the pause before each load, which lets the work of the one before finish.
	breath = time.Second
)

// A point is one rate and its results.
type point struct {
	rate float64
	load.Kind
	// late is the p99 of the delay of the drivers' calls, in seconds.
	late  float64
	keeps bool
}

// answered returns the part of the calls that got an answer in time.
func (p point) answered() float64 {
	if p.Offered == 0 {
		return 0
	}
	return float64(p.Answered) / float64(p.Offered)
}

// A search is the state of a search for the knee.
type search struct {
	scenario *scenario.Scenario
	// measure runs the fabric at a rate.
	measure func(ctx context.Context, rate float64) (point, error)
	points  []point
	// base is the p99 of the first rate, in seconds.
	base float64
	// knee is the highest rate so far that the fabric keeps up with; 0: not known yet.
	// beyond is the lowest that it does not keep up with; 0: not known yet.
	knee, beyond float64
}

// bound returns the limit for p99, in seconds.
func (s *search) bound() float64 {
	return max(s.base*s.scenario.Knee.P99, s.scenario.Knee.Floor.Std().Seconds())
}

// run finds the highest rate that the fabric keeps up with, and the lowest that it does
// not. If the fabric keeps up with the highest allowed rate, the latter stays unknown.
func (s *search) run(ctx context.Context) error {
	k := s.scenario.Knee
	if err := s.first(ctx); err != nil {
		return err
	}
	s.knee = k.From
	for s.beyond == 0 && s.knee < k.Most {
		if err := s.step(ctx, min(s.knee*faster, k.Most)); err != nil {
			return err
		}
	}
	for s.beyond/s.knee > near {
		if err := s.step(ctx, (s.knee+s.beyond)/2); err != nil {
			return err
		}
	}
	return nil
}

// step measures a rate and narrows the gap.
func (s *search) step(ctx context.Context, rate float64) error {
	keeps, err := s.try(ctx, rate)
	switch {
	case err != nil:
		return err
	case keeps:
		s.knee = rate
	default:
		s.beyond = rate
	}
	return nil
}

// first measures the first rate and its p99.
func (s *search) first(ctx context.Context) error {
	var p99s []float64
	for range firsts {
		p, err := s.measure(ctx, s.scenario.Knee.From)
		if err != nil {
			return err
		}
		if p.answered() < s.scenario.Knee.Answered {
			return fmt.Errorf("the fabric does not keep up with the lowest rate, %.4g tool calls per second: %.1f %% of the calls were answered in time", p.rate, p.answered()*100)
		}
		p.keeps = true
		s.points = append(s.points, p)
		p99s = append(p99s, p.Latency.At(0.99))
	}
	s.base = report.Median(p99s)
	return nil
}

// try measures a rate until enough measurements agree.
func (s *search) try(ctx context.Context, rate float64) (keeps bool, err error) {
	said := map[bool]int{}
	for said[true] < agree && said[false] < agree {
		p, err := s.measure(ctx, rate)
		if err != nil {
			return false, err
		}
		p.keeps = s.keeps(p.Kind)
		s.points = append(s.points, p)
		said[p.keeps]++
	}
	return said[true] == agree, nil
}

// keeps reports whether the fabric kept up with the calls.
func (s *search) keeps(k load.Kind) bool {
	return point{Kind: k}.answered() >= s.scenario.Knee.Answered && k.Latency.At(0.99) <= s.bound()
}

// site is the fabric of a search.
type site struct {
	session  *fleet.Session
	scenario *scenario.Scenario
	stage    fleet.Stage
	checks   report.Document
}

// open starts the fabric.
func open(ctx context.Context, s *scenario.Scenario, st fleet.Stage) (*site, error) {
	x, err := fleet.Open(ctx, s, st)
	if err != nil {
		return nil, err
	}
	return &site{session: x, scenario: s, stage: st}, nil
}

// knee searches the knee. With an error it also returns the results until then.
func (x *site) knee(ctx context.Context) (*search, error) {
	s := &search{scenario: x.scenario, measure: x.measure}
	return s, s.run(ctx)
}

// measure runs the fabric at a rate, after a pause.
func (x *site) measure(ctx context.Context, rate float64) (point, error) {
	s := *x.scenario
	if !load.Pause(ctx, breath) {
		return point{}, context.Cause(ctx)
	}
	s.Rate, s.Steps, s.For = rate, nil, s.Knee.Step
	m, err := x.session.Load(ctx, &s)
	if err == nil {
		x.checks.Merge(m.Document().Checks) // also of an interrupted load: a wrong answer always counts
		if m.Early {
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return point{}, fmt.Errorf("at %.4g tool calls per second: %w", rate, err)
	}
	p := point{rate: rate, late: m.Series.Late.At(0.99), Kind: m.Total(0, s.For.Std())}
	fmt.Fprintf(x.stage.Live, "%.0f/s: %.1f %% answered in time, p50 %s, p99 %s\n", rate, p.answered()*100,
		report.Value(p.Latency.At(0.5), "s"), report.Value(p.Latency.At(0.99), "s"))
	return p, nil
}

// Run searches the knee of the scenario's fabric. If ctx interrupts it, the result has the
// completed loads and no knee.
func Run(ctx context.Context, s *scenario.Scenario, st fleet.Stage) (*report.Document, error) {
	x, err := open(ctx, s, st)
	if err != nil {
		return nil, err
	}
	found, err := x.knee(ctx)
	early := err != nil && ctx.Err() != nil && found.knee > 0
	if err = errors.Join(err, x.session.Close()); err != nil && !early {
		return nil, err
	}
	d := &report.Document{
		Scenario: s.Name, Checks: x.checks.Checks,
		// Runs of the same scenario have the same title.
		Title: fmt.Sprintf("Highest rate of tool calls of %d agents on %d connections", s.Agents, s.Connections),
	}
	found.document(d, early)
	return d, nil
}

// Rate returns the knee of a scenario's fabric, for a run at a part of the knee: how many
// tool uses per second the fabric keeps up with, for the scenario's own agents and
// injections.
func Rate(ctx context.Context, s *scenario.Scenario, st fleet.Stage) (float64, error) {
	searched := *s
	searched.Kind, searched.Faults = scenario.Saturate, nil
	searched.Fabric.Links = s.Soak.Chaos || s.Fabric.Links // as the load itself will
	st.Dir = filepath.Join(st.Dir, "knee")
	if err := os.Mkdir(st.Dir, 0o700); err != nil {
		return 0, fmt.Errorf("making a directory for the search: %w", err)
	}
	x, err := open(ctx, &searched, st)
	if err != nil {
		return 0, err
	}
	found, err := x.knee(ctx)
	if err = errors.Join(err, x.session.Close()); err != nil {
		return 0, err
	}
	for _, c := range x.checks.Checks {
		if c.Wrong > 0 {
			return 0, fmt.Errorf("during the search for the knee a check failed: %s: %s", c.Name, c.Examples[0])
		}
	}
	return found.knee, nil
}
