package bench

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

// A Report is the result of a run that compares contenders.
type Report struct {
	report.Document
	// Rows are the ratios with their budgets.
	Rows []Row `json:"rows"`
	// Absolute are the figures behind them, which hold for this machine at this time.
	Absolute []Absolute `json:"absolute"`
	// EventBytes is the size of an encoded event; 0: it varies.
	EventBytes int `json:"event_bytes,omitzero"`
	// Repetitions, Window and Warm are how it was measured.
	Repetitions int             `json:"repetitions"`
	Window      schema.Duration `json:"window,omitzero"`
	Warm        schema.Duration `json:"warm,omitzero"`
}

// A Row is one ratio with its 95 % interval and its budget.
type Row struct {
	Name    string `json:"name"`
	Callers int    `json:"callers"`
	// Metric is p50, p99, throughput, or cpu: the CPU time of all processes per call.
	Metric string  `json:"metric"`
	Ratio  float64 `json:"ratio"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Budget is the smallest ratio of a throughput, or the largest of another metric; null: none.
	Budget *float64 `json:"budget"`
	// OK reports whether the ratio is within the budget.
	OK bool `json:"ok"`
}

// Absolute are the medians of one contender over the repetitions.
type Absolute struct {
	Name      string          `json:"name"`
	Callers   int             `json:"callers"`
	P50       schema.Duration `json:"p50"`
	P99       schema.Duration `json:"p99,omitzero"`
	PerSecond float64         `json:"per_second,omitzero"`
	// Costs are what a call takes of each process that takes part in it, by role.
	Costs map[string]Cost `json:"costs,omitzero"`
}

// The metrics of a report.
const (
	p50        = "p50"
	p99        = "p99"
	throughput = "throughput"
	cpu        = "cpu"
)

// Many is the number of callers where there is more than one.
const Many = 16

// A cell is one figure of a line.
type cell struct {
	metric  string
	callers int
	value   func(Sample) float64
	limit   func(Limits) float64
}

// cells lists the figures that a line can have. A line with budgets has those with a budget; a line
// without has the usual ones.
func cells() []cell {
	return []cell{
		{p50, 1, P50, func(l Limits) float64 { return l.P50 }},
		{p50, Many, P50, func(l Limits) float64 { return l.P50Many }},
		{throughput, Many, PerSecond, func(l Limits) float64 { return l.Throughput }},
		{cpu, Many, totalCPU, func(l Limits) float64 { return l.CPU }},
		{p99, Many, P99, func(l Limits) float64 { return l.P99 }},
	}
}

// usual is how many of the cells are usual.
const usual = 3

// A Line compares a contender with another one.
type Line struct {
	// Name is that of the rows; empty: Of.
	Name string
	// Of is divided by By. Less is subtracted from Of before; empty: nothing.
	Of, Less, By string
	// Limits are the budgets.
	Limits Limits
	// Cells is how many of the usual figures a line without budgets has; 0: all.
	Cells int
}

// Compare adds the rows and figures of the lines whose contenders were measured.
func (r *Report) Compare(o *Options, s Samples, lines []Line) {
	for _, l := range lines {
		if len(s[l.Of]) == 0 || len(s[l.By]) == 0 || l.Less != "" && len(s[l.Less]) == 0 {
			continue
		}
		for i, c := range cells() {
			limit := c.limit(l.Limits)
			if l.Limits == (Limits{}) && i >= cmp.Or(l.Cells, usual) || l.Limits != (Limits{}) && limit == 0 {
				continue
			}
			if _, ok := s[l.Of][0][c.callers]; !ok || l.Less != "" && c.metric == throughput { // throughputs do not add up
				continue
			}
			row := Row{Name: l.Name, Callers: c.callers, Metric: c.metric}
			if row.Name == "" {
				row.Name = l.Of
			}
			if limit != 0 {
				row.Budget = &limit
			}
			r.Add(o, row, l.ratios(c, s))
		}
	}
}

// ratios returns one ratio for each repetition.
func (l Line) ratios(c cell, s Samples) []float64 {
	ratios, by := s.Of(l.Of, c.callers, c.value), s.Of(l.By, c.callers, c.value)
	for i := range ratios {
		if l.Less != "" {
			ratios[i] -= c.value(s[l.Less][i][c.callers])
		}
		ratios[i] /= by[i]
	}
	return ratios
}

// Add adds a row and its figure, from one ratio for each repetition.
func (r *Report) Add(o *Options, row Row, ratios []float64) {
	better, callers := report.Lower, "1 caller"
	if row.Metric == throughput {
		better = report.Higher
	}
	if row.Callers != 1 {
		callers = fmt.Sprintf("%d callers", row.Callers)
	}
	f := report.Figured(fmt.Sprintf("%s, %s, %s", row.Name, row.Metric, callers), "ratio", better, ratios)
	if row.Budget != nil {
		f = o.Within(f, *row.Budget)
	}
	row.Ratio, row.Low, row.High, row.OK = rounded(f.Value), rounded(f.Low), rounded(f.High), f.OK()
	r.Rows, r.Figures = append(r.Rows, row), append(r.Figures, f)
}

// rounded drops digits that mean nothing.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// Show adds the absolute figures of contenders, and their table.
func (r *Report) Show(s Samples, callers []int, all []Contender) {
	t := report.Table{
		Title: "absolute, median", Columns: []string{"", "callers", "p50", "p99", "per second", "CPU per call", "allocations", "waits of threads"},
		Note: "Absolute times hold for this machine at this time; compare the ratios.",
	}
	for _, c := range all {
		for _, n := range callers {
			if len(s[c.Name]) == 0 {
				continue
			}
			f := middle(s[c.Name], n)
			a := Absolute{Name: c.Name, Callers: n, P50: legible(f.P50), P99: legible(f.P99), PerSecond: math.Round(f.PerSecond), Costs: involved(f.Costs)}
			r.Absolute = append(r.Absolute, a)
			cpu, allocations, waits := sums(a.Costs)
			t.Rows = append(t.Rows, []string{a.Name, fmt.Sprint(n), a.P50.String(), a.P99.String(), fmt.Sprintf("%.0f", a.PerSecond), cpu, allocations, waits})
		}
		r.Repetitions = max(r.Repetitions, len(s[c.Name]))
	}
	r.Tables = append(r.Tables, t)
}

// totalCPU returns the CPU time per call of all processes that take part in it, in seconds.
func totalCPU(s Sample) float64 {
	sum := schema.Duration(0)
	for _, c := range involved(s.Costs) {
		sum += c.CPU
	}
	return sum.Std().Seconds()
}

// involved drops the processes that take almost no part in a call.
func involved(costs map[string]Cost) map[string]Cost {
	const share = 50
	sum, some := schema.Duration(0), map[string]Cost{}
	for _, c := range costs {
		sum += c.CPU
	}
	for role, c := range costs {
		if c.CPU > sum/share {
			some[role] = Cost{CPU: legible(c.CPU), Allocations: math.Round(c.Allocations), Bytes: math.Round(c.Bytes), Waits: math.Round(10*c.Waits) / 10}
		}
	}
	return some
}

// sums returns the costs of all processes together, and the CPU time of each in microseconds.
func sums(costs map[string]Cost) (cpu, allocations, waits string) {
	var sum Cost
	var parts []string
	for _, role := range slices.Sorted(maps.Keys(costs)) { // in one order: sums of floats depend on it
		c := costs[role]
		sum.CPU, sum.Allocations, sum.Waits = sum.CPU+c.CPU, sum.Allocations+c.Allocations, sum.Waits+c.Waits
		parts = append(parts, fmt.Sprintf("%s %.0f", role, float64(c.CPU)/1000))
	}
	cpu = fmt.Sprintf("%.0f µs", float64(sum.CPU)/1000)
	if len(parts) > 1 {
		cpu += " (" + strings.Join(parts, ", ") + ")"
	}
	return cpu, fmt.Sprintf("%.0f", sum.Allocations), fmt.Sprintf("%.1f", sum.Waits)
}

// legible drops digits that mean nothing.
func legible(d schema.Duration) schema.Duration {
	return schema.Duration(d.Std().Round(100 * time.Nanosecond))
}
