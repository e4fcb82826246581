package shim

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/stats"
	"github.com/hookfabric/hookfabric/schema"
)

// A Report is what a run showed.
type Report struct {
	result.Document
	// Rows are the ratios to the Go program, judged.
	Rows []bench.Row `json:"rows"`
	// Absolute are the times behind them, from exec to exit.
	Absolute []Absolute `json:"absolute"`
	// Binary is the size of agentshim in bytes.
	Binary int64 `json:"binary_bytes"`
	// Daemon is what the daemon takes; without calls it was not measured.
	Daemon Daemon `json:"daemon"`
	// Repetitions and Runs are how it was measured.
	Repetitions int `json:"repetitions"`
	Runs        int `json:"runs"`
}

// Absolute is what one run of one program took, the medians over the repetitions.
type Absolute struct {
	Name string          `json:"name"`
	P50  schema.Duration `json:"p50"`
	// CPU is the processor's time, the program's own and the kernel's for it, and Faults
	// are the pages that it touched for the first time. Both depend less on what
	// else the machine does than the time from exec to exit.
	CPU    schema.Duration `json:"cpu"`
	Faults float64         `json:"faults"`
}

// OK reports whether every budget was kept.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Rows, func(r bench.Row) bool { return !r.OK })
}

// The budgets: how many times the Go program's time a hook may take.
const (
	directBudget = 2.8
	daemonBudget = 1.7
)

// judged turns samples, one per repetition and program, into a report.
func judged(o Options, samples map[string][]sample) *Report {
	r := &Report{Repetitions: len(samples[baseline]), Runs: max(o.Runs, 1)}
	limit := func(v float64) *float64 { return &v }
	for _, row := range []bench.Row{
		{Name: byDaemon, Budget: limit(daemonBudget)}, {Name: direct, Budget: limit(directBudget)}, {Name: versioned}, {Name: inPython},
	} {
		took := samples[row.Name]
		if len(took) == 0 {
			continue // there is no Python
		}
		ratios := make([]float64, len(took))
		for i, s := range took {
			ratios[i] = s.took / samples[baseline][i].took
		}
		row.Callers, row.Metric = 1, "p50"
		row = row.Slackened(o.Slack)
		r.Rows, r.Figures = append(r.Rows, row.Judged(ratios)), append(r.Figures, row.Figure(ratios))
	}
	for _, name := range []string{baseline, byDaemon, direct, versioned, inPython} {
		if all := samples[name]; len(all) > 0 {
			r.Absolute = append(r.Absolute, Absolute{
				Name:   name,
				P50:    legible(each(all, func(s sample) float64 { return s.took })),
				CPU:    legible(each(all, func(s sample) float64 { return s.cpu })),
				Faults: stats.Median(each(all, func(s sample) float64 { return s.faults })),
			})
		}
	}
	return r
}

// legible is the median of times, without the digits that mean nothing.
func legible(ns []float64) schema.Duration {
	return schema.Duration(time.Duration(stats.Median(ns)).Round(10 * time.Microsecond))
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "exec to exit, ratio to the Go program [95 %] budget\tp50")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\n", row.Name, row.Cell())
	}
	fmt.Fprintln(t, "\nabsolute, median\tp50\tCPU per call\tpage faults")
	for _, a := range r.Absolute {
		fmt.Fprintf(t, "%s\t%v\t%v\t%.0f\n", a.Name, a.P50, a.CPU, a.Faults)
	}
	d := r.Daemon
	fmt.Fprintf(t, "\nthe program\t%.1f MiB\n", mib(r.Binary))
	if d.Calls > 0 {
		fmt.Fprintf(t, "the daemon, %d hooks at once\tall answered after %v\n", d.Parallel, d.Together)
		fmt.Fprintf(t, "the daemon, %d calls\t%.0f/s, p50 %v, p99 %v; memory %.1f MiB before, %.1f MiB after\n",
			d.Calls, d.PerSecond, d.P50, d.P99, mib(d.Before), mib(d.After))
	}
	fmt.Fprintf(t, "\n%d repetitions of %d runs; %v\n", r.Repetitions, r.Runs, r.Machine)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
