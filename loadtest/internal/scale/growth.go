package scale

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
)

// A step is a size of something, and the request that is measured at it.
type step struct {
	name string
	// many is the position on the axis of a plot.
	many   int
	fabric *bench.Fabric
	target roles.Target
	window load.Window
}

// A series is one thing that grows, in growing order.
type series struct {
	name  string
	steps []step
}

// A growth is some series in one table.
type growth struct {
	part, title string
	// of is the unit of the steps.
	of   string
	note string
	all  []*series
	// worker means that the fabric has a worker, and that the table shows its CPU time.
	worker bool
	// samples are the results, by the label of the step.
	samples bench.Samples
}

// measure measures every step of all series, and adds the results to the report.
func (r *run) measure(ctx context.Context, g *growth) error {
	var all []bench.Contender
	for _, s := range g.all {
		for i, st := range s.steps {
			all = append(all, bench.Contender{Name: s.label(i), Measure: func(ctx context.Context, callers int) (bench.Sample, error) {
				if callers == 0 {
					return bench.Sample{}, st.fabric.Ready(ctx, st.target)
				}
				return st.fabric.Measure(ctx, st.target, st.window)
			}})
		}
	}
	var err error
	if g.samples, err = r.Repeat(ctx, r.Times(10, 1), []int{1}, all); err != nil {
		return err
	}
	g.add(r.report)
	return nil
}

// add adds the table, the figures and the plots.
func (g *growth) add(r *Report) {
	t := report.Table{Title: g.title, Note: g.note, Columns: []string{g.of, "p50", "p99", "p99.9", "per second", "broker's CPU"}}
	if g.worker {
		t.Columns = append(t.Columns, "worker's CPU")
	}
	t.Columns = append(t.Columns, "p50 : the first [95 %]", "CPU : the first [95 %]")
	for _, s := range g.all {
		for i := range s.steps {
			seconds := func(of func(bench.Sample) float64) string { return report.Value(g.median(s, i, of), "s") }
			row := []string{
				s.label(i), seconds(bench.P50), seconds(bench.P99), seconds(func(s bench.Sample) float64 { return s.P999.Std().Seconds() }),
				report.Value(g.median(s, i, bench.PerSecond), "/s"), seconds(bench.CPUOf(roles.Broker)),
			}
			if g.worker {
				row = append(row, seconds(bench.CPUOf(roles.HookWorker)))
			}
			t.Rows = append(t.Rows, append(row, interval(g.ratios(s, i, bench.P50)), interval(g.ratios(s, i, cpu))))
			g.figures(r, s, i)
		}
	}
	r.Tables = append(r.Tables, t)
	g.plot(r, "p50 of a call", bench.P50)
	g.plot(r, "CPU time of a call", cpu)
}

func (s *series) label(i int) string {
	if s.name == "" {
		return s.steps[i].name
	}
	return s.name + ", " + s.steps[i].name
}

// cpu returns the CPU time that a call takes of the fabric.
func cpu(s bench.Sample) float64 {
	return bench.CPUOf(roles.Broker)(s) + bench.CPUOf(roles.HookWorker)(s)
}

func (g *growth) median(s *series, i int, of func(bench.Sample) float64) float64 {
	return report.Median(g.samples.Of(s.label(i), 1, of))
}

// ratios returns the values of a step divided by those of the first one. It leaves out
// repetitions in which the first value was too small to be measured.
func (g *growth) ratios(s *series, i int, of func(bench.Sample) float64) []float64 {
	var all []float64
	first := g.samples.Of(s.label(0), 1, of)
	for n, v := range g.samples.Of(s.label(i), 1, of) {
		if first[n] > 0 {
			all = append(all, v/first[n])
		}
	}
	return all
}

// figures adds the CPU time of a step, and its ratios to the first one.
func (g *growth) figures(r *Report, s *series, i int) {
	name := g.part + ": " + s.label(i)
	r.Figures = append(r.Figures, report.Figured(name+", CPU of a call", "s", report.Lower, g.samples.Of(s.label(i), 1, cpu)))
	for _, of := range []struct {
		name  string
		value func(bench.Sample) float64
	}{{"p50", bench.P50}, {"CPU", cpu}} {
		if ratios := g.ratios(s, i, of.value); i > 0 && len(ratios) > 0 {
			r.Figures = append(r.Figures, report.Figured(name+", "+of.name+" : the first", "ratio", report.Lower, ratios))
		}
	}
}

// plot adds a plot. A step of size 0 has no place on its logarithmic axis.
func (g *growth) plot(r *Report, what string, of func(bench.Sample) float64) {
	p := report.Plot{Title: g.title + ": " + what, X: report.Axis{Label: g.of, Log: true}, Y: report.Axis{Label: what, Unit: "s"}}
	for _, s := range g.all {
		l := report.Line{Name: cmp.Or(s.name, "a call")}
		for i, st := range s.steps {
			if e := report.Estimated(g.samples.Of(s.label(i), 1, of)); st.many > 0 {
				l.X, l.Y, l.Low, l.High = append(l.X, float64(st.many)), append(l.Y, e.Median), append(l.Low, e.Low), append(l.High, e.High)
			}
		}
		p.Lines = append(p.Lines, l)
	}
	r.Plots = append(r.Plots, p)
}

// interval returns a median with its interval.
func interval(samples []float64) string {
	if len(samples) == 0 {
		return "not seen"
	}
	e := report.Estimated(samples)
	return fmt.Sprintf("%.2f [%.2f %.2f]", e.Median, e.Low, e.High)
}

// counted returns a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(float64(n)) + " " + many
}
