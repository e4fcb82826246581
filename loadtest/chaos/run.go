package chaos

import (
	"context"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// Run starts the fabric of a scenario and puts it under load. Meanwhile it causes the faults of
// the scenario, and those that it draws. Of a soak it also reports what grew.
func Run(ctx context.Context, asked *scenario.Scenario, st fleet.Stage) (*result.Document, error) {
	s := withFaults(asked)
	x, err := fleet.Open(ctx, s, st)
	if err != nil {
		return nil, err
	}
	m, settled, err := loaded(ctx, s, x)
	if err = x.End(m, err); err != nil {
		return nil, err
	}
	d, err := m.Document()
	if err != nil {
		return nil, err
	}
	if s.DrawsFaults() {
		err = Add(d, m)
	}
	if s.Kind == scenario.Soaking {
		addGrowth(d, m, settled)
	}
	return d, err
}

func loaded(ctx context.Context, s *scenario.Scenario, x *fleet.Session) (*fleet.Measured, []left, error) {
	if s.Kind == scenario.Soaking {
		return soak(ctx, s, x)
	}
	m, err := x.Load(ctx, s)
	return m, nil, err
}

// withFaults returns the scenario with the faults that are drawn for it. A soak kills processes
// of the fabric only early: growth shows in those that live long.
func withFaults(asked *scenario.Scenario) *scenario.Scenario {
	s := *asked
	if !s.DrawsFaults() {
		return &s
	}
	drawn := Draw(&s)
	if s.Kind == scenario.Soaking {
		until := schema.Duration(float64(s.For) * scenario.SoakLives)
		drawn = slices.DeleteFunc(drawn, func(f faults.Fault) bool { return f.Kind == faults.Kill && ofFabric(f.Member) && f.At > until })
		s.Fabric.Links = true
	}
	s.Faults = append(slices.Clone(s.Faults), drawn...)
	return &s
}

// Add adds to what a load showed what its faults did to it.
func Add(d *result.Document, m *fleet.Measured) error {
	w, err := watch(m.Series, m.Done, m.Began, m.Scenario.For.Std())
	if err != nil {
		return err
	}
	all, err := w.felt(m.Done)
	if err != nil {
		return err
	}
	d.Title += fmt.Sprintf(", with %d faults, seed %d", len(all), m.Scenario.Seed)
	d.Figures = append(d.Figures, figures(all)...)
	d.Tables = append(d.Tables, w.table(all))
	calm, err := w.answered(m.Done)
	if err != nil {
		return err
	}
	d.Checks = append(d.Checks, calm)
	done := d.Check("every planned fault happened")
	done.Seen, done.Least = int64(len(m.Done)), int64(max(len(m.Scenario.Faults), 1))
	if m.Early {
		// Some were still to be done, and the time after the last one was still to come.
		done.Least = 0
		return nil
	}
	well, err := w.recovered(m.Done, m.Scenario.Quiet()/2)
	if err != nil {
		return err
	}
	d.Checks = append(d.Checks, well)
	return nil
}
