package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/stats"
	"github.com/hookfabric/hookfabric/schema"
)

// The shape of the load that a growing pool is given: a little more than all of its
// workers can take.
const (
	// slots is how many hooks a worker runs at once.
	slots = 8
	// queued is how many callers there are besides those that the workers take. Where
	// more wait for as long as a window lasts, that is an overload, and where the machine
	// has a stall then the broker rightly turns calls away.
	queued = 8
	// wait is how long each hook waits, burn how much of a processor it needs instead.
	wait = 20 * time.Millisecond
	burn = 2 * time.Millisecond
	pool = "waiting"
	// met is how long it takes at most until all know a new worker.
	met = 600 * time.Millisecond
	// efficiency is the part of linear growth that the pool must reach at least
	// where hooks wait.
	efficiency = 0.8
)

// A labour is what the hooks of the growing pool do.
type labour struct {
	name string
	waiter
}

type waiter struct {
	takes time.Duration
	burns bool
}

// workers grows the number of workers of one pool.
func (o *Options) workers(ctx context.Context, r *Report) error {
	hooks := hooksYAML([]string{fmt.Sprintf("    - {name: waits, matcher: wait, type: builtin, handler: %s, pool: %s}\n", roles.WaitHandler, pool)})
	return o.with(ctx, "workers", hooks, func(s *stand) error {
		t := result.Table{Title: "Workers of one pool", Columns: []string{"workers", "per second", "of ideal", "p50", "p99", "ratio to 1 worker [95 %]"},
			Note: fmt.Sprintf("Each worker runs %d calls in parallel, and there are %d more callers. The ideal rate is limited only by the waiting time of the hooks. Hooks that compute are limited by the %d CPUs, which all processes share.", slots, queued, r.Machine.CPUs)}
		p := result.Plot{Title: "Throughput by workers of one pool", X: result.Axis{Label: "workers", Log: true}, Y: result.Axis{Label: "calls", Unit: "/s"}}
		for _, l := range []labour{{name: fmt.Sprintf("hooks that wait %v", wait), waiter: waiter{takes: wait}}, {name: fmt.Sprintf("hooks that compute for %v", burn), waiter: waiter{burn, true}}} {
			rates, all, err := o.grown(ctx, s, l)
			if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			t.Rows = append(t.Rows, l.rows(o.Workers, rates, all)...)
			r.Figures = append(r.Figures, l.figures(o.Workers, rates)...)
			p.Lines = append(p.Lines, drawn(l.name, o.Workers, rates))
		}
		r.Tables, r.Plots = append(r.Tables, t), append(r.Plots, p)
		return nil
	})
}

// grown grows the pool a few times, and says what each number of workers did.
func (o *Options) grown(ctx context.Context, s *stand, l labour) (rates [][]float64, all [][]measure.Figures, err error) {
	rates, all = make([][]float64, len(o.Workers)), make([][]measure.Figures, len(o.Workers))
	for n := range max(o.repetitions()/2, 1) {
		if err := o.growPool(ctx, s, l, func(i int, f measure.Figures) {
			rates[i], all[i] = append(rates[i], f.PerSecond), append(all[i], f)
		}); err != nil {
			return nil, nil, err
		}
		o.say("workers: %s, repetition %d of %d", l.name, n+1, max(o.repetitions()/2, 1))
	}
	return rates, all, nil
}

// growPool grows the pool step by step, measures each, and ends its workers.
func (o *Options) growPool(ctx context.Context, s *stand, l labour, tell func(i int, f measure.Figures)) (err error) {
	workers := o.Crew.Like()
	defer func() { err = errors.Join(err, workers.Stop()) }()
	here := 0
	for i, want := range o.Workers {
		for ; here < want; here++ {
			config := roles.WaiterConfig{NATS: s.nats, Pool: pool, Wait: schema.Duration(l.takes), Burn: l.burns, Slots: slots}
			if _, err := workers.Start(ctx, roles.Waiter, config, nil); err != nil {
				return err
			}
		}
		q := roles.CrowdRequest{Tool: "wait", Hooks: 1}
		if err := s.ready(ctx, q); err != nil {
			return err
		}
		q.Window = measure.Window{Callers: want*slots + queued, Warm: schema.Duration(met), Long: schema.Duration(max(2*o.Window, 10*wait))}
		got, err := s.ask(ctx, q)
		if err != nil {
			return fmt.Errorf("with %d workers: %w", want, err)
		}
		tell(i, got.Figures)
	}
	return nil
}

// ratios are the rates by those of the first step of the same repetition.
func ratios(rates [][]float64, i int) []float64 {
	all := make([]float64, len(rates[i]))
	for n, rate := range rates[i] {
		all[n] = rate / rates[0][n]
	}
	return all
}

// ideal is what so many workers could do per second if nothing but the wait took time.
func ideal(workers int) float64 { return float64(workers*slots) / wait.Seconds() }

func (l labour) rows(steps []int, rates [][]float64, all [][]measure.Figures) (rows [][]string) {
	for i, n := range steps {
		of := "–"
		rate := stats.Median(rates[i])
		if !l.burns {
			of = fmt.Sprintf("%.0f %%", 100*rate/ideal(n))
		}
		rows = append(rows, []string{l.name + ", " + counted(n, "worker", "workers"), fmt.Sprintf("%.0f", rate), of,
			middle(all[i], func(f measure.Figures) schema.Duration { return f.P50 }), middle(all[i], func(f measure.Figures) schema.Duration { return f.P99 }), interval(ratios(rates, i))})
	}
	return rows
}

// middle is the median of what all repetitions showed.
func middle(all []measure.Figures, of func(measure.Figures) schema.Duration) string {
	var values []float64
	for _, f := range all {
		values = append(values, of(f).Std().Seconds())
	}
	return micros(stats.Median(values))
}

// figures are how much the pool grew; where hooks wait it has to.
func (l labour) figures(steps []int, rates [][]float64) (all []result.Figure) {
	for i, n := range steps {
		if i == 0 {
			continue
		}
		f := result.Figured(fmt.Sprintf("workers: %s, %s : the first", l.name, counted(n, "worker", "workers")), "ratio", result.Higher, ratios(rates, i))
		if !l.burns {
			f = f.Within(efficiency * float64(n) / float64(steps[0]))
		}
		all = append(all, f)
	}
	return all
}

// drawn is a line of the plot.
func drawn(name string, steps []int, rates [][]float64) result.Line {
	l := result.Line{Name: name}
	for i, n := range steps {
		e := stats.Estimated(rates[i])
		l.X, l.Y = append(l.X, float64(n)), append(l.Y, e.Median)
		l.Low, l.High = append(l.Low, e.Low), append(l.High, e.High)
	}
	return l
}
