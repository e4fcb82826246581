package bench

import (
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// Figure is the row with all of its ratios, one per repetition, so that another
// run can be held against it.
func (r Row) Figure(ratios []float64) result.Figure {
	better := result.Lower
	if r.Metric == throughput {
		better = result.Higher
	}
	f := result.Figured(r.title(), "ratio", better, ratios)
	if r.Budget == nil {
		return f
	}
	return f.Within(r.bound())
}

// title names the row's figure among those of all rows.
func (r Row) title() string {
	callers := "1 caller"
	if r.Callers != 1 {
		callers = fmt.Sprintf("%d callers", r.Callers)
	}
	return fmt.Sprintf("%s, %s, %s", r.Name, r.Metric, callers)
}

// table is the absolute figures for the report.
func (r *Report) table() result.Table {
	t := result.Table{
		Title:   "absolute, median",
		Columns: []string{"", "callers", "p50", "p99", "per second"},
		Note:    "Absolute times hold for this machine at this time; compare the ratios.",
	}
	for _, a := range r.Absolute {
		t.Rows = append(t.Rows, []string{a.Name, fmt.Sprint(a.Callers), a.P50.String(), a.P99.String(), fmt.Sprintf("%.0f", a.PerSecond)})
	}
	return t
}

// plots show how each metric's ratio grows with the number of hooks.
func (r *Report) plots() []result.Plot {
	var plots []result.Plot
	for _, c := range cells() {
		p := result.Plot{
			Title: "By the number of hooks: " + (Row{Name: "ratio to the bare request-reply", Metric: c.metric, Callers: c.callers}).title(),
			X:     result.Axis{Label: "hooks of the event"},
			Y:     result.Axis{Label: c.metric + " ÷ that of the bare request-reply", Unit: "ratio"},
		}
		for _, l := range []struct {
			name string
			of   func(hooks int) string
		}{{"hooks inside broker", inBroker}, {"hooks of a remote pool", inPool}, {"HTTP webhook", byWebhook}, {"HTTP in two stages", byStages}} {
			p.Lines = append(p.Lines, r.grown(l.name, c, l.of))
		}
		p.Lines = slices.DeleteFunc(p.Lines, func(l result.Line) bool { return len(l.X) == 0 })
		if len(p.Lines) > 0 {
			plots = append(plots, p)
		}
	}
	return plots
}

// grown is the line of one contender with growing numbers of hooks, as far as it
// was measured.
func (r *Report) grown(name string, c cell, of func(hooks int) string) result.Line {
	line := result.Line{Name: name}
	for _, hooks := range counts() {
		at := slices.IndexFunc(r.Rows, func(r Row) bool {
			return r.Name == of(hooks) && r.Metric == c.metric && r.Callers == c.callers
		})
		if at < 0 {
			continue
		}
		row := r.Rows[at]
		line.X, line.Y = append(line.X, float64(hooks)), append(line.Y, row.Ratio)
		line.Low, line.High = append(line.Low, row.Low), append(line.High, row.High)
	}
	return line
}
