package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/stats"
	"github.com/hookfabric/hookfabric/schema"
)

// Options say how thoroughly to measure.
type Options struct {
	// Repetitions is how often every row is measured; fewer than one is one.
	Repetitions int
	// Window is how long one figure is measured, Warm how long before that
	// the callers already ask.
	Window, Warm time.Duration
	// Slack is by what factor a budget may be exceeded, for short runs and busy
	// machines; below 1: not at all.
	Slack float64
	// Only limits the rows to those with it in their names; empty: all of them.
	Only string
	// Record is what the broker writes down of verdicts: facts, content or off; empty:
	// what it does unless told otherwise.
	Record string
	// Dir is an empty directory for what the processes keep.
	Dir string
	// Crew starts the processes.
	Crew *proc.Crew
	// Progress takes a line for every repetition; it must not be nil.
	Progress io.Writer
}

// Thorough are the options of a run whose figures are meant to be read.
func Thorough() Options {
	return Options{Repetitions: 10, Window: 200 * time.Millisecond, Warm: 40 * time.Millisecond}
}

// Quick are the options of a run that only looks whether everything answers right.
func Quick() Options {
	return Options{Repetitions: 2, Window: 50 * time.Millisecond, Warm: 10 * time.Millisecond}
}

// Check says what cannot be measured.
func (o Options) Check() error {
	if !slices.Contains([]string{"", "facts", "content", "off"}, o.Record) {
		return fmt.Errorf("the record is %q; write facts, content or off", o.Record)
	}
	if len(chosen(o.Only)) == 1 && !strings.Contains(raw, o.Only) {
		return fmt.Errorf("no row has %q in its name, so nothing would be checked; write a part of a name such as %q", o.Only, inPool(1))
	}
	return nil
}

// Run starts all processes, measures every row in every repetition, ends the
// processes and judges the figures. A single wrong answer is an error. Where ctx
// interrupts it the repetitions count that were over.
func Run(ctx context.Context, o Options) (*Report, error) {
	o.Crew = o.Crew.Like(roles.KeepPages)
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	samples, err := repeated(ctx, s, o)
	if err = errors.Join(err, o.Crew.Stop()); err != nil {
		return nil, err
	}
	return judged(o, samples), nil
}

// repeated measures: for each contender, by name, one sample per repetition.
func repeated(ctx context.Context, s *session, o Options) (map[string][]sample, error) {
	all := chosen(o.Only)
	fmt.Fprintf(o.Progress, "waiting until %d rows answer correctly\n", len(all))
	for _, c := range all {
		if _, err := s.measure(ctx, c, measure.Window{}); err != nil {
			return nil, err
		}
	}
	if _, err := repetition(ctx, s, all, o); err != nil { // to warm up; not counted
		return nil, err
	}
	samples := map[string][]sample{}
	began := time.Now()
	for i := range max(o.Repetitions, 1) {
		one, err := repetition(ctx, s, all, o)
		if err != nil && ctx.Err() != nil && i > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		for name, s := range one {
			samples[name] = append(samples[name], s)
		}
		fmt.Fprintf(o.Progress, "repetition %d of %d, %v\n", i+1, o.Repetitions, time.Since(began).Round(time.Second))
	}
	return samples, nil
}

// repetition measures every row, in an order of its own. What all others are
// divided by is measured several times over, spread among them, so that one bad
// moment does not bend them all.
func repetition(ctx context.Context, s *session, all []contender, o Options) (map[string]sample, error) {
	const baselines = 3
	order := slices.Concat(all, slices.Repeat(all[:1], baselines-1))
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	shown := map[string][]sample{}
	for _, c := range order {
		one := sample{}
		for _, callers := range []int{1, many} {
			w := measure.Window{Callers: callers, Warm: schema.Duration(o.Warm), Long: schema.Duration(o.Window)}
			f, err := s.measure(ctx, c, w)
			if err != nil {
				return nil, err
			}
			one[callers] = f
		}
		shown[c.name] = append(shown[c.name], one)
	}
	samples := map[string]sample{}
	for name, several := range shown {
		samples[name] = sample{1: middle(several, 1), many: middle(several, many)}
	}
	return samples, nil
}

// middle is what several samples showed with so many callers, by their medians.
func middle(several []sample, callers int) figures {
	var p50s, p99s, rates []float64
	var costs []map[string]Cost
	calls := int64(0)
	for _, s := range several {
		f := s[callers]
		calls += f.Calls
		p50s, p99s = append(p50s, float64(f.P50)), append(p99s, float64(f.P99))
		rates, costs = append(rates, f.PerSecond), append(costs, f.costs)
	}
	return figures{measure.Figures{
		Calls: calls, P50: schema.Duration(stats.Median(p50s)), P99: schema.Duration(stats.Median(p99s)),
		PerSecond: stats.Median(rates),
	}, medianCosts(costs)}
}
