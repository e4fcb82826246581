package notice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// Options say how often somebody is lost.
type Options struct {
	// Repetitions is how often each loss happens; fewer than one is one.
	Repetitions int
	// Takes is how long the hook takes that is under way. It must be longer than
	// the time between two signs of life, within which the loss happens.
	Takes time.Duration
	// Only limits the run to these losses; none: all of them.
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
func Thorough() Options { return Options{Repetitions: 10, Takes: 600 * time.Millisecond} }

// Quick are the options of a run that only looks whether everything works.
func Quick() Options { return Options{Repetitions: 2, Takes: 600 * time.Millisecond} }

// Losses are the names that Only may have.
func Losses() []string {
	var names []string
	for _, l := range losses() {
		names = append(names, l.name)
	}
	return names
}

// Check says what is wrong with the options.
func (o *Options) Check() error {
	for _, name := range o.Only {
		if !slices.Contains(Losses(), name) {
			return fmt.Errorf("unknown loss %q; write one or more of %v", name, Losses())
		}
	}
	return nil
}

// Run has all losses happen, one after the other, each in a fabric of its own. Where
// ctx interrupts it those count that had happened.
func Run(ctx context.Context, o Options) (*result.Document, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	d := new(result.Document)
	for _, l := range losses() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, l.name) {
			continue
		}
		samples, err := o.lose(ctx, l)
		if ctx.Err() != nil && len(samples) > 0 {
			o.judge(d, l, samples)
		}
		if ctx.Err() != nil && len(d.Figures) > 0 {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.title, err)
		}
		o.judge(d, l, samples)
	}
	d.Notes = notes()
	return d, nil
}

// lose has a loss happen as often as it should, or as ctx lets it.
func (o *Options) lose(ctx context.Context, l loss) (samples []sample, err error) {
	s, err := o.stand(ctx, l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for n := range max(o.Repetitions, 1) {
		if err := s.ready(ctx); err != nil {
			return samples, err
		}
		got, err := l.happen(s, ctx)
		if err != nil {
			return samples, err
		}
		samples = append(samples, got)
		fmt.Fprintf(o.Progress, "%s: %d of %d\n", l.title, n+1, max(o.Repetitions, 1))
	}
	return samples, nil
}
