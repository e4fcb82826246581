package state

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// Options say what to measure, and how thoroughly.
type Options struct {
	// Repetitions is how often ratios are measured; fewer than one is one.
	Repetitions int
	// Calls is how many calls one caller makes for a figure, many of them four
	// times as many together. Window is how long a figure is measured where calls
	// can go on for ever.
	Calls  int
	Window time.Duration
	// Waiting is how many items wait for others, Crowd how many agents a
	// broadcast is for, Kills how often a leader is killed.
	Waiting, Crowd, Kills int
	// Only limits what is measured to these parts; none: all of them.
	Only []string
	// Slack is by what factor a budget may be exceeded, for short runs and busy
	// machines; below 1: not at all.
	Slack float64
	// Dir is an empty directory for what the processes keep.
	Dir string
	// Crew says how processes are started.
	Crew *proc.Crew
	// Progress takes a line now and then; it must not be nil.
	Progress io.Writer
}

// Thorough are the options of a run whose figures are meant to be read.
func Thorough() Options {
	return Options{Repetitions: 10, Calls: 200, Window: 300 * time.Millisecond, Waiting: 100_000, Crowd: 10_000, Kills: 3}
}

// Quick are the options of a run that only looks whether everything answers right.
func Quick() Options {
	return Options{Repetitions: 1, Calls: 16, Window: 50 * time.Millisecond, Waiting: 500, Crowd: 50, Kills: 1}
}

func (o *Options) repetitions() int { return max(o.Repetitions, 1) }

// say tells of progress.
func (o *Options) say(format string, args ...any) { fmt.Fprintf(o.Progress, format+"\n", args...) }

// A part is one thing that is measured.
type part struct {
	name string
	run  func(*Options, context.Context, *Report) error
}

func parts() []part {
	return []part{
		{"speed", (*Options).speed},
		{"others", (*Options).others},
		{"given", (*Options).given},
		{"broadcast", (*Options).broadcast},
		{"leaderless", (*Options).leaderless},
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

// Run measures all parts, one after the other. A single wrong answer ends its
// part; the figures of the others still count, and where ctx interrupts it those
// of the parts that were over.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	r := &Report{Repetitions: o.repetitions(), Window: schema.Duration(o.Window)}
	tried := int64(0)
	for _, p := range parts() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, p.name) {
			continue
		}
		err := p.run(&o, ctx, r)
		switch {
		case ctx.Err() != nil && tried == 0:
			return nil, context.Cause(ctx)
		case ctx.Err() != nil:
			r.document(tried)
			return r, nil //nolint:nilerr // of a part that was interrupted it says nothing
		}
		tried++
		if err != nil {
			r.Failures = append(r.Failures, fmt.Sprintf("%s: %v", p.name, err))
			o.say("%s: %v", p.name, err)
		}
	}
	r.document(tried)
	return r, nil
}
