package chaos

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// Options say what goes wrong, and for how long.
type Options struct {
	// Scenario is the load, and the fabric under it. Faults that it has are done as
	// well as those that are drawn.
	Scenario scenario.Scenario
	// Dice draw the faults; their seed is the scenario's.
	Dice Dice
	// Quiet is how long before the end there are no faults any more, so that it shows
	// whether all is well again.
	Quiet time.Duration
}

// Default is a minute of everything that can go wrong.
func Default() Options {
	s := scenario.Default()
	s.Name, s.For = "chaos", schema.Duration(time.Minute)
	s.Rate, s.Drivers, s.Deadline = 150, 2, schema.Duration(10*time.Second)
	s.Fabric.Brokers, s.Fabric.Workers, s.Fabric.Server = 2, 3, true
	return Options{
		Scenario: s,
		Dice:     Dice{Together: 1, Longest: 3 * time.Second, Pause: 2 * time.Second},
		Quiet:    12 * time.Second,
	}
}

// Check says what is wrong with the options.
func (o *Options) Check() error {
	var errs []error
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, k := range o.Dice.Kinds {
		if !slices.Contains(faults.Kinds(), k) {
			say("there is no fault of the kind %q; write some of %v", k, faults.Kinds())
		}
	}
	for _, m := range o.Dice.Members {
		if _, err := path.Match(m, ""); err != nil || len(faults.Matching(m, o.members())) == 0 {
			say("no member is called %q; there are %v", m, o.members())
		}
	}
	if o.Dice.Longest < shortest || o.Dice.Pause <= 0 || o.Dice.Together < 1 {
		say("faults last at least %v, there is a pause between them, and one at a time, not %v, %v and %d", shortest, o.Dice.Longest, o.Dice.Pause, o.Dice.Together)
	}
	if o.loud() < o.Dice.Longest {
		say("in %v, of which the last %v are quiet, there is no room for faults of up to %v", o.Scenario.For, o.quiet(), o.Dice.Longest)
	}
	if d := o.Scenario.Deadline.Std(); time.Duration(o.Dice.Together+1)*o.Dice.Longest > d {
		say("faults of up to %v, %d at a time, may hold an agent up longer than its deadline of %v; make that longer", o.Dice.Longest, o.Dice.Together, d)
	}
	return errors.Join(errs...)
}

// quiet is how long there are no faults in the end: a third at most.
func (o *Options) quiet() time.Duration { return min(o.Quiet, o.Scenario.For.Std()/3) }

// loud is how long there are faults.
func (o *Options) loud() time.Duration { return o.Scenario.For.Std() - o.quiet() }

// members are those of the field that faults can be drawn for.
func (o *Options) members() []string {
	s := &o.Scenario
	var all []string
	some := func(kind string, n int) {
		for i := range n {
			all = append(all, field.Numbered(kind, i+1))
		}
	}
	if s.Fabric.Kind != field.External {
		all = append(all, field.Server)
		some(field.Broker, s.Fabric.Brokers)
	}
	some(field.Worker, s.Fabric.Workers)
	some("driver", s.Drivers)
	if s.Injections > 0 {
		some("producer", 1)
	}
	return all
}

// Run puts up the fabric, has it under load while the faults are done, and says
// what came of that.
func Run(ctx context.Context, o Options, st fleet.Stage) (*result.Document, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := o.Scenario
	s.Fabric.Server = s.Fabric.Kind != field.External
	o.Dice.Seed = s.Seed
	s.Faults = append(slices.Clone(s.Faults), o.Dice.Draw(o.members(), o.loud())...)
	x, err := fleet.Open(ctx, &s, st)
	if err != nil {
		return nil, err
	}
	m, err := x.Load(ctx, &s)
	if err = errors.Join(err, x.Close()); err != nil {
		return nil, err
	}
	return o.document(m)
}

// document is what the load showed, and what the faults did to it.
func (o *Options) document(m *fleet.Measured) (*result.Document, error) {
	d, err := m.Document()
	if err != nil {
		return nil, err
	}
	w, err := watch(m.Series, m.Done, m.Began, o.Scenario.For.Std())
	if err != nil {
		return nil, err
	}
	all, err := w.felt(m.Done)
	if err != nil {
		return nil, err
	}
	d.Title += fmt.Sprintf(", with %d faults, drawn by the seed %d", len(all), o.Scenario.Seed)
	d.Figures = append(d.Figures, figures(all)...)
	d.Tables = append(d.Tables, w.table(all))
	done := d.Check("the faults were done")
	done.Seen, done.Least = int64(len(m.Done)), int64(len(m.Scenario.Faults))
	well, err := w.recovered(m.Done, o.quiet()/2)
	if err != nil {
		return nil, err
	}
	d.Check(well.Name).Add(well)
	d.Check(well.Name).Least = well.Least
	return d, nil
}
