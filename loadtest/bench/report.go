package bench

import (
	"math"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/stats"
	"github.com/hookfabric/hookfabric/schema"
)

// A Report is what a run showed.
type Report struct {
	result.Document
	// Rows are the ratios, judged.
	Rows []Row `json:"rows"`
	// Absolute are the figures behind them: true for this machine in that hour.
	Absolute []Absolute `json:"absolute"`
	// EventBytes is the size of an encoded event.
	EventBytes int `json:"event_bytes"`
	// Repetitions, Window and Warm are how it was measured.
	Repetitions int             `json:"repetitions"`
	Window      schema.Duration `json:"window"`
	Warm        schema.Duration `json:"warm"`
}

// A Row is one ratio with its 95 % interval, and its budget.
type Row struct {
	Name    string `json:"name"`
	Callers int    `json:"callers"`
	// Metric is p50 or throughput.
	Metric string  `json:"metric"`
	Ratio  float64 `json:"ratio"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Budget is the largest ratio of a p50, or the smallest of a throughput;
	// null where there is none.
	Budget *float64 `json:"budget"`
	// OK is false only if the whole interval is beyond the budget.
	OK bool `json:"ok"`

	slack float64 // how often the budget; below 1: once
}

// Absolute is what one contender took, the median over the repetitions.
type Absolute struct {
	Name      string          `json:"name"`
	Callers   int             `json:"callers"`
	P50       schema.Duration `json:"p50"`
	P99       schema.Duration `json:"p99"`
	PerSecond float64         `json:"per_second"`
	// Costs are what a call takes of each process that has to do with it.
	Costs map[string]Cost `json:"costs"`
}

// OK reports whether every budget was kept.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Rows, func(r Row) bool { return !r.OK })
}

// judged turns samples, one per repetition and contender, into a report.
func judged(o Options, samples map[string][]sample) *Report {
	r := &Report{
		EventBytes: roles.EventSize, Repetitions: len(samples[raw]),
		Window: schema.Duration(o.Window), Warm: schema.Duration(o.Warm),
	}
	for _, l := range lines() {
		if !l.in(samples) {
			continue
		}
		for i, c := range cells() {
			if l.less != "" && c.metric == throughput {
				continue // throughputs do not add up
			}
			ratios := l.ratios(c, samples)
			row := Row{Name: l.name, Callers: c.callers, Metric: c.metric}.Slackened(o.Slack).limited(l.limits[i]).Judged(ratios)
			r.Rows, r.Figures = append(r.Rows, row), append(r.Figures, row.Figure(ratios))
		}
	}
	for _, c := range chosen(o.Only) {
		for _, callers := range []int{1, many} {
			r.Absolute = append(r.Absolute, absolute(c.name, callers, samples[c.name]))
		}
	}
	r.Tables, r.Plots = []result.Table{r.table()}, r.plots()
	return r
}

// in reports whether all that the line speaks of was measured.
func (l line) in(samples map[string][]sample) bool {
	return len(samples[l.of]) > 0 && len(samples[l.by]) > 0 && (l.less == "" || len(samples[l.less]) > 0)
}

// ratios are one cell's ratios, one per repetition.
func (l line) ratios(c cell, samples map[string][]sample) []float64 {
	var ratios []float64
	for i, s := range samples[l.of] {
		v := c.of(s)
		if l.less != "" {
			v -= c.of(samples[l.less][i])
		}
		ratios = append(ratios, v/c.of(samples[l.by][i]))
	}
	return ratios
}

// limited is the row with a budget; 0: there is none.
func (r Row) limited(limit float64) Row {
	if limit != 0 {
		r.Budget = &limit
	}
	return r
}

// Judged is the row with the figures of ratios, one per repetition, and whether
// they keep within its budget.
func (r Row) Judged(ratios []float64) Row { return r.judged(stats.Estimated(ratios)) }

func (r Row) judged(e stats.Estimate) Row {
	r.Ratio, r.Low, r.High = rounded(e.Median), rounded(e.Low), rounded(e.High)
	switch {
	case r.Budget == nil:
		r.OK = true
	case r.Metric == throughput:
		r.OK = r.High >= r.bound()
	default:
		r.OK = r.Low <= r.bound()
	}
	return r
}

// Slackened is the row over its budget only if it is by this factor; below 1: by any.
func (r Row) Slackened(by float64) Row {
	r.slack = by
	return r
}

// bound is the row's budget with its slack.
func (r Row) bound() float64 {
	if r.Metric == throughput {
		return *r.Budget / max(r.slack, 1)
	}
	return *r.Budget * max(r.slack, 1)
}

// Cell is the row's figures in a table for people.
func (r Row) Cell() string { return r.cell() }

// rounded keeps what can be told apart, for people who read the JSON.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

func absolute(name string, callers int, samples []sample) Absolute {
	f := middle(samples, callers)
	return Absolute{
		Name: name, Callers: callers, P50: legible(f.P50), P99: legible(f.P99),
		PerSecond: math.Round(f.PerSecond), Costs: involved(f.costs),
	}
}

// legible drops the digits that mean nothing.
func legible(d schema.Duration) schema.Duration {
	return schema.Duration(d.Std().Round(100 * time.Nanosecond))
}
