package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// Options say how thoroughly to measure.
type Options struct {
	// Repetitions is how often every row is measured; fewer than one is one.
	Repetitions int
	// Window is how long one figure is measured, Warm how long before that
	// the callers already ask.
	Window, Warm time.Duration
	// Dir is an empty directory for what the processes keep.
	Dir string
	// Crew starts the processes.
	Crew *proc.Crew
	// Progress takes a line for every repetition; it must not be nil.
	Progress io.Writer
}

// Thorough are the options of a run whose figures are meant to be read.
func Thorough() Options {
	return Options{Repetitions: 12, Window: 300 * time.Millisecond, Warm: 50 * time.Millisecond}
}

// Quick are the options of a run that only looks whether everything answers right.
func Quick() Options {
	return Options{Repetitions: 1, Window: 30 * time.Millisecond, Warm: 5 * time.Millisecond}
}

// Run starts all processes, measures every row in every repetition, counts the
// messages of one query of each, ends the processes and judges the figures. A
// single wrong answer is an error. Where ctx interrupts it the repetitions count that
// were over, and no messages are counted.
func Run(ctx context.Context, o Options) (*Report, error) {
	samples, counted, err := run(ctx, o)
	if err = errors.Join(err, o.Crew.Stop()); err != nil {
		return nil, err
	}
	return judged(o, samples, counted), nil
}

func run(ctx context.Context, o Options) (map[string][]sample, map[string]int, error) {
	s, url, err := open(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	all := contenders()
	fmt.Fprintf(o.Progress, "waiting until %d rows answer correctly\n", len(all))
	for _, c := range all {
		if _, err := s.measure(ctx, c, measure.Window{}); err != nil {
			return nil, nil, err
		}
	}
	if _, err := s.repetition(ctx, all, o); err != nil { // to warm up; not counted
		return nil, nil, err
	}
	samples := map[string][]sample{}
	for i := range max(o.Repetitions, 1) {
		one, err := s.repetition(ctx, all, o)
		if err != nil && ctx.Err() != nil && i > 0 {
			return samples, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		for name, s := range one {
			samples[name] = append(samples[name], s)
		}
		fmt.Fprintf(o.Progress, "repetition %d of %d\n", i+1, max(o.Repetitions, 1))
	}
	counted, err := s.messages(ctx, o, url)
	if ctx.Err() != nil {
		return samples, nil, nil //nolint:nilerr // of messages that were not counted it says nothing
	}
	return samples, counted, err
}

// sample is what one repetition showed of one row, by the number of callers.
type sample map[int]measure.Figures

// repetition measures every contender once, in an order of its own.
func (s *session) repetition(ctx context.Context, all []contender, o Options) (map[string]sample, error) {
	samples := map[string]sample{}
	for _, i := range rand.Perm(len(all)) {
		c := all[i]
		one := sample{}
		for _, callers := range []int{1, many} {
			f, err := s.measure(ctx, c, measure.Window{Callers: callers, Warm: schema.Duration(o.Warm), Long: schema.Duration(o.Window)})
			if err != nil {
				return nil, err
			}
			one[callers] = f
		}
		samples[c.title()] = one
	}
	return samples, nil
}
