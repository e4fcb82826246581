package scale

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/stats"
)

// A step is how much there is of something, and how a call is measured then.
type step struct {
	name string
	// many is the place on the axis.
	many int
	ask  func(context.Context) (sample, error)
}

// A series is one thing that grows, in growing order.
type series struct {
	name    string
	steps   []step
	samples [][]sample // by step, by repetition
}

// A growth is what is said of some series together.
type growth struct {
	part, title string
	// of is what there is more of: the axis' label and the first column's.
	of string
	// worker: there is one, and it is told of.
	worker bool
	note   string
	all    []*series
}

// repeated measures every step of all series, in an order of its own each time.
func (o *Options) repeated(ctx context.Context, g *growth) error {
	type at struct {
		s *series
		i int
	}
	var order []at
	for _, s := range g.all {
		s.samples = make([][]sample, len(s.steps))
		for i := range s.steps {
			order = append(order, at{s, i})
		}
	}
	for n := range o.repetitions() {
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, to := range order {
			st := to.s.steps[to.i]
			got, err := st.ask(ctx)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", to.s.name, st.name, err)
			}
			to.s.samples[to.i] = append(to.s.samples[to.i], got)
		}
		o.say("%s: repetition %d of %d", g.part, n+1, o.repetitions())
	}
	return nil
}

// tell puts what was measured into the report.
func (g *growth) tell(r *Report) {
	t := result.Table{Title: g.title, Note: g.note, Columns: []string{g.of, "p50", "p99", "p99.9", "broker's CPU"}}
	if g.worker {
		t.Columns = append(t.Columns, "worker's CPU")
	}
	t.Columns = append(t.Columns, "p50 : the first [95 %]", "CPU : the first [95 %]")
	for _, s := range g.all {
		for i := range s.steps {
			t.Rows = append(t.Rows, s.row(i, g.worker))
		}
	}
	r.Tables = append(r.Tables, t)
	r.Figures = append(r.Figures, g.figures()...)
	r.Plots = append(r.Plots, g.plots()...)
}

// row is one step's.
func (s *series) row(i int, worker bool) []string {
	row := []string{s.label(i), micros(s.median(i, p50)), micros(s.median(i, p99)), micros(s.median(i, p999)), micros(s.median(i, broker))}
	if worker {
		row = append(row, micros(s.median(i, ofWorker)))
	}
	return append(row, interval(s.ratios(i, p50)), interval(s.ratios(i, sample.cpu)))
}

func (s *series) label(i int) string {
	if s.name == "" {
		return s.steps[i].name
	}
	return s.name + ", " + s.steps[i].name
}

// What is read from a sample, in seconds.
func p50(s sample) float64      { return s.P50.Std().Seconds() }
func p99(s sample) float64      { return s.P99.Std().Seconds() }
func p999(s sample) float64     { return s.P999.Std().Seconds() }
func broker(s sample) float64   { return s.broker }
func ofWorker(s sample) float64 { return s.worker }

// values are what all repetitions of a step showed.
func (s *series) values(i int, of func(sample) float64) []float64 {
	all := make([]float64, len(s.samples[i]))
	for n, one := range s.samples[i] {
		all[n] = of(one)
	}
	return all
}

func (s *series) median(i int, of func(sample) float64) float64 {
	return stats.Median(s.values(i, of))
}

// ratios are a step's values by the first step's of the same repetition. Where that
// was too little to be seen there is none.
func (s *series) ratios(i int, of func(sample) float64) []float64 {
	var all []float64
	first := s.values(0, of)
	for n, v := range s.values(i, of) {
		if first[n] > 0 {
			all = append(all, v/first[n])
		}
	}
	return all
}

// figures are the ratios, and what a call takes of processors.
func (g *growth) figures() (all []result.Figure) {
	for _, s := range g.all {
		for i := range s.steps {
			name := g.part + ": " + s.label(i)
			all = append(all, result.Figured(name+", CPU of a call", "s", result.Lower, s.values(i, sample.cpu)))
			if i == 0 {
				continue
			}
			for _, r := range []struct {
				name string
				of   func(sample) float64
			}{{"p50", p50}, {"CPU", sample.cpu}} {
				if ratios := s.ratios(i, r.of); len(ratios) > 0 {
					all = append(all, result.Figured(name+", "+r.name+" : the first", "ratio", result.Lower, ratios))
				}
			}
		}
	}
	return all
}

// plots are how long a call takes, and how much of processors.
func (g *growth) plots() (all []result.Plot) {
	for _, one := range []struct {
		what string
		of   func(sample) float64
	}{{"p50 of a call", p50}, {"p99 of a call", p99}, {"CPU time of a call", sample.cpu}} {
		p := result.Plot{Title: g.title + ": " + one.what, X: result.Axis{Label: g.of, Log: true}, Y: result.Axis{Label: one.what, Unit: "s"}}
		for _, s := range g.all {
			p.Lines = append(p.Lines, s.line(one.of))
		}
		all = append(all, p)
	}
	return all
}

// line is one line of a plot. None at all has no place on a logarithmic axis.
func (s *series) line(of func(sample) float64) result.Line {
	l := result.Line{Name: cmp.Or(s.name, "a call")}
	for i, st := range s.steps {
		if st.many == 0 {
			continue
		}
		e := stats.Estimated(s.values(i, of))
		l.X, l.Y = append(l.X, float64(st.many)), append(l.Y, e.Median)
		l.Low, l.High = append(l.Low, e.Low), append(l.High, e.High)
	}
	return l
}

// micros is a time for people.
func micros(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 100*time.Microsecond:
		return fmt.Sprintf("%.1f µs", seconds*1e6)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.0f µs", seconds*1e6)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	}
	return fmt.Sprintf("%.2f s", seconds)
}

// interval is a median with its interval, for people.
func interval(samples []float64) string {
	if len(samples) == 0 {
		return "not seen"
	}
	e := stats.Estimated(samples)
	return fmt.Sprintf("%.2f [%.2f %.2f]", e.Median, e.Low, e.High)
}

// size is a number of bytes for people.
func size(b float64) string {
	switch {
	case b < 0:
		return "-" + size(-b)
	case b < 10<<10:
		return fmt.Sprintf("%.0f B", b)
	case b < 10<<20:
		return fmt.Sprintf("%.1f KiB", b/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", b/(1<<20))
}

// counted is a number with what it counts.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// grouped is a number with a comma at each thousand.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
