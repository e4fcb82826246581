package loop

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/stats"
	"github.com/hookfabric/hookfabric/schema"
)

// A Report is what a run showed.
type Report struct {
	result.Document
	// Rows are the ratios of whole queries to as many bare request-replies, judged.
	Rows []bench.Row `json:"rows"`
	// Messages are what one query sends to workers.
	Messages []Messages `json:"messages"`
	// Absolute are the figures behind the ratios.
	Absolute []Absolute `json:"absolute"`
	// Events is how many a query has.
	Events int `json:"events"`
	// Repetitions, Window and Warm are how it was measured.
	Repetitions int             `json:"repetitions"`
	Window      schema.Duration `json:"window"`
	Warm        schema.Duration `json:"warm"`
}

// Messages is how many messages one query sent to workers, counted on
// hook.v1.run.>.
type Messages struct {
	Name     string `json:"name"`
	PerQuery int    `json:"per_query"`
	// Due is how many there must be: one an event where its hook is elsewhere, else none.
	Due int  `json:"due"`
	OK  bool `json:"ok"`
}

// Absolute is what a query of one contender took, the median over the repetitions.
type Absolute struct {
	Name      string          `json:"name"`
	P50       schema.Duration `json:"p50"`
	P50Many   schema.Duration `json:"p50_16"`
	PerSecond float64         `json:"per_second_16"`
}

// OK reports whether no message was sent in vain, and none was missing. Time is not
// judged here: a query has no budget, single calls have (see bench).
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Messages, func(m Messages) bool { return !m.OK })
}

// A cell is one figure of a row.
type cell struct {
	metric  string
	callers int
}

func cells() []cell { return []cell{{"p50", 1}, {"p50", many}, {"throughput", many}} }

func (c cell) of(s sample) float64 {
	if c.metric == "throughput" {
		return s[c.callers].PerSecond
	}
	return float64(s[c.callers].P50)
}

// judged turns samples, one per repetition and contender, and the counted
// messages, nil if nobody counted, into a report.
func judged(o Options, samples map[string][]sample, counted map[string]int) *Report {
	r := &Report{
		Events: roles.QueryEvents, Repetitions: len(samples[contenders()[0].title()]),
		Window: schema.Duration(o.Window), Warm: schema.Duration(o.Warm),
	}
	for _, c := range contenders() {
		mine := samples[c.title()]
		r.Absolute = append(r.Absolute, absolute(c.title(), mine))
		bare := contender{setups()[0], c.together}
		if c == bare {
			continue
		}
		if counted != nil {
			r.Messages = append(r.Messages, Messages{c.title(), counted[c.title()], c.messages, counted[c.title()] == c.messages})
		}
		for _, cell := range cells() {
			row, ratios := c.row(cell, mine, samples[bare.title()])
			r.Rows, r.Figures = append(r.Rows, row), append(r.Figures, row.Figure(ratios))
		}
	}
	r.document()
	return r
}

// row is one cell of the contender's ratios to bare ones, and those ratios, one
// per repetition.
func (c contender) row(of cell, mine, bare []sample) (bench.Row, []float64) {
	row := bench.Row{Name: c.title(), Callers: of.callers, Metric: of.metric}
	var ratios []float64
	for i := range mine {
		ratios = append(ratios, of.of(mine[i])/of.of(bare[i]))
	}
	return row.Judged(ratios), ratios
}

func absolute(name string, samples []sample) Absolute {
	median := func(of cell) float64 {
		var all []float64
		for _, s := range samples {
			all = append(all, of.of(s))
		}
		return stats.Median(all)
	}
	figures := cells()
	round := func(ns float64) schema.Duration { return schema.Duration(time.Duration(ns).Round(time.Microsecond)) }
	return Absolute{name, round(median(figures[0])), round(median(figures[1])), median(figures[2])}
}

// Print writes r for people.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "a query of %d events, ratio to as many bare request-replies [95 %%]\tp50, 1 caller\tp50, %d callers\tthroughput, %d callers\tmessages to workers\n", r.Events, many, many)
	i := 0
	for rows := range slices.Chunk(r.Rows, len(cells())) {
		fmt.Fprint(t, rows[0].Name)
		for _, row := range rows {
			fmt.Fprintf(t, "\t%s", row.Cell())
		}
		if i < len(r.Messages) {
			fmt.Fprintf(t, "\t%d of %d", r.Messages[i].PerQuery, r.Messages[i].Due)
		}
		fmt.Fprintln(t)
		i++
	}
	fmt.Fprintf(t, "\nabsolute, median of a query\tp50, 1 caller\tp50, %d callers\tthroughput, %d callers\n", many, many)
	for _, a := range r.Absolute {
		fmt.Fprintf(t, "%s\t%v\t%v\t%.0f/s\n", a.Name, a.P50, a.P50Many, a.PerSecond)
	}
	fmt.Fprintf(t, "\n%d repetitions of %v; %v\n", r.Repetitions, r.Window, r.Machine)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}
