package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/machine"
	"github.com/hookfabric/hookfabric/loadtest/model"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/schema"
)

// Options say what to measure, and how thoroughly.
type Options struct {
	// Repetitions is how often every step is measured; fewer than one is one.
	Repetitions int
	// Window is how long a step is measured each time, Warm how long before that
	// the callers already ask.
	Window, Warm time.Duration
	// Hooks on one call, Matchers in the configuration, Agents, Connections, Pending
	// items and Workers are the steps of the parts, each in growing order.
	Hooks, Matchers, Agents, Connections, Pending, Workers []int
	// Only limits what is measured to these parts; none: all of them.
	Only []string
	// Dir is an empty directory for what the processes keep.
	Dir string
	// Crew says how processes are started.
	Crew *proc.Crew
	// Progress takes a line now and then; it must not be nil.
	Progress io.Writer
}

// Thorough are the options of a run whose figures are meant to be read.
func Thorough() Options {
	return Options{
		Repetitions: 10, Window: 250 * time.Millisecond, Warm: 50 * time.Millisecond,
		Hooks: []int{1, 2, 4, 8, 16}, Matchers: []int{1, 10, 100, 1000, 10_000}, Agents: []int{10, 100, 1000, 10_000},
		Connections: []int{500, 2000, 10_000}, Pending: []int{0, 10, 100, 1000, 10_000, 100_000}, Workers: []int{1, 2, 4},
	}
}

// Quick are the options of a run that only looks whether everything answers right.
func Quick() Options {
	return Options{
		Repetitions: 1, Window: 50 * time.Millisecond, Warm: 10 * time.Millisecond,
		Hooks: []int{1, 16}, Matchers: []int{1, 100}, Agents: []int{10, 100},
		Connections: []int{10, 100}, Pending: []int{0, 100}, Workers: []int{1, 2},
	}
}

func (o *Options) repetitions() int { return max(o.Repetitions, 1) }

// say tells of progress.
func (o *Options) say(format string, args ...any) { fmt.Fprintf(o.Progress, format+"\n", args...) }

// A part is one thing that grows.
type part struct {
	name string
	run  func(*Options, context.Context, *Report) error
}

func parts() []part {
	return []part{
		{"hooks", (*Options).hooks},
		{"matchers", (*Options).matchers},
		{"agents", (*Options).agents},
		{"connections", (*Options).connections},
		{"pending", (*Options).pending},
		{"workers", (*Options).workers},
		{"units", (*Options).units},
	}
}

// Parts are the names that Only may have.
func Parts() []string {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	return names
}

// Check says what is wrong with the options.
func (o *Options) Check() error {
	for _, name := range o.Only {
		if !slices.Contains(Parts(), name) {
			return fmt.Errorf("unknown part %q; write one or more of %v", name, Parts())
		}
	}
	return nil
}

// A Report is what a run showed.
type Report struct {
	result.Document
	// Units are what one thing costs, for the model of more than one machine bears;
	// a unit that was not measured is 0.
	Units model.Units `json:"units,omitzero"`
	// Repetitions and Window are how it was measured.
	Repetitions int             `json:"repetitions"`
	Window      schema.Duration `json:"window"`
}

// Run measures the parts, one after the other. A single wrong answer ends its part
// and is an error; what the others showed is still in the report. So is what was over
// where ctx interrupts it.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	r := &Report{Repetitions: o.repetitions(), Window: schema.Duration(o.Window)}
	r.Machine = machine.Here()
	r.Title = fmt.Sprintf("Growth of the cost of a call; %d repetitions of %v at each step", r.Repetitions, o.Window)
	var errs []error
	tried := int64(0)
	for _, p := range parts() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, p.name) {
			continue
		}
		err := p.run(&o, ctx, r)
		if ctx.Err() != nil && tried == 0 {
			return nil, context.Cause(ctx)
		}
		if ctx.Err() != nil {
			break
		}
		tried++
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	if len(errs) == len(parts()) || len(errs) > 0 && len(o.Only) > 0 {
		return nil, errors.Join(errs...)
	}
	answered := r.Check("every part was measured, and every answer in it was right")
	answered.Seen, answered.Least = tried, 1
	for _, err := range errs {
		answered.Fail(err.Error())
	}
	return r, nil
}
