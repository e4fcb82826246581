package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

// Options are the options of a measuring command. A command ignores those that it does
// not have as flags.
type Options struct {
	// Quick measures briefly, to see that every answer is correct.
	Quick bool
	// Repetitions is how often everything is measured; 0: the command's default.
	Repetitions int
	// Only limits the run to these parts, or to rows with one of these texts in their
	// names; empty: all.
	Only []string
	// Slack is the factor by which a figure may miss its budget; below 1: 1.
	Slack float64
	// Record is what the broker records of verdicts: facts, content or off; empty: its default.
	Record string
	// Rate is the number of verdicts per second; 0: 2000.
	Rate float64
	// Shims is the number of shims that a freeze must reach; 0: the command's default.
	Shims int
	// Dir is an empty folder for the files of the processes.
	Dir string
	// Crew starts the processes.
	Crew *proc.Crew
	// Progress receives lines of progress; it must not be nil.
	Progress io.Writer
}

// Pick returns one of two values: for a thorough run or for a quick one.
func Pick[T any](o *Options, thorough, quick T) T {
	if o.Quick {
		return quick
	}
	return thorough
}

// Milliseconds returns one of two durations.
func (o *Options) Milliseconds(thorough, quick int) schema.Duration {
	return schema.Duration(time.Duration(Pick(o, thorough, quick)) * time.Millisecond)
}

// Times returns the number of repetitions, with the defaults of the command.
func (o *Options) Times(thorough, quick int) int {
	if o.Repetitions > 0 {
		return o.Repetitions
	}
	return Pick(o, thorough, quick)
}

// Within returns the figure with a budget, widened by the slack.
func (o *Options) Within(f report.Figure, budget float64) report.Figure {
	if f.Better == report.Higher {
		return f.Within(budget / max(o.Slack, 1))
	}
	return f.Within(budget * max(o.Slack, 1))
}

// Say writes a line of progress.
func (o *Options) Say(format string, args ...any) { fmt.Fprintf(o.Progress, format+"\n", args...) }

// A Part is one thing that a command measures.
type Part struct {
	Name string
	Run  func(ctx context.Context) error
}

// measured is the check that holds if every part succeeded.
const measured = "every part was measured, and every answer in it was right"

// Run runs the selected parts one after the other. An error ends only its part and fails a
// check of the document. A part that ctx interrupts does not count; without any other it is an error.
func (o *Options) Run(ctx context.Context, d *report.Document, parts []Part) error {
	for _, p := range parts {
		if len(o.Only) > 0 && !slices.Contains(o.Only, p.Name) {
			continue
		}
		err := p.Run(ctx)
		if ctx.Err() != nil {
			break
		}
		d.Check(measured).Seen++
		if err != nil {
			o.Say("%s: %v", p.Name, err)
			d.Check(measured).Fail(fmt.Sprintf("%s: %v", p.Name, err))
		}
	}
	if ctx.Err() != nil && len(d.Checks) == 0 && len(d.Figures) == 0 {
		return context.Cause(ctx)
	}
	d.Check(measured).Least = 1
	return nil
}
