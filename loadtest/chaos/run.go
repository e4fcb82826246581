package chaos

import (
	"context"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
)

// Run puts up the scenario's fabric, has it under load while the scenario's faults
// are done, and those that are drawn, and says what came of that.
func Run(ctx context.Context, asked *scenario.Scenario, st fleet.Stage) (*result.Document, error) {
	s := *asked
	s.Faults = append(slices.Clone(s.Faults), Draw(&s)...)
	x, err := fleet.Open(ctx, &s, st)
	if err != nil {
		return nil, err
	}
	m, err := x.Load(ctx, &s)
	if err = x.End(m, err); err != nil {
		return nil, err
	}
	d, err := m.Document()
	if err != nil {
		return nil, err
	}
	return d, Add(d, m)
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
