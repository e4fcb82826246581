package scale

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/hookfabric/hookfabric/loadtest/machine"
	"github.com/hookfabric/hookfabric/loadtest/stats"
	"github.com/hookfabric/hookfabric/schema"
)

// efficiency is the part of linear growth that the pool must reach at least.
const efficiency = 0.8

// A Report is what a run showed.
type Report struct {
	// Rows are the steps, in growing numbers of workers.
	Rows []Row `json:"rows"`
	// Machine is where it ran, and with what.
	Machine machine.Facts `json:"machine"`
	// Callers is the offered concurrency, Slots what each worker takes of it
	// at once, Wait how long a hook waits.
	Callers int             `json:"callers"`
	Slots   int             `json:"slots"`
	Wait    schema.Duration `json:"wait"`
	// Repetitions and Window are how it was measured.
	Repetitions int             `json:"repetitions"`
	Window      schema.Duration `json:"window"`
}

// A Row is one number of workers.
type Row struct {
	Workers int `json:"workers"`
	// PerSecond and P50 are medians over the repetitions.
	PerSecond float64         `json:"per_second"`
	P50       schema.Duration `json:"p50"`
	// Ideal is what the workers' slots could do per second if nothing but the
	// wait took time.
	Ideal float64 `json:"ideal"`
	// Ratio is the throughput next to one worker's of the same repetition,
	// with its 95 % interval.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Budget is the ratio that the whole interval must not be below.
	Budget float64 `json:"budget"`
	OK     bool    `json:"ok"`
}

// OK reports whether throughput grew as workers did.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Rows, func(r Row) bool { return !r.OK })
}

// judged turns the repetitions' samples into a report.
func judged(o Options, samples []sample) *Report {
	r := &Report{
		Machine: o.machine, Callers: callers, Slots: slots, Wait: schema.Duration(wait),
		Repetitions: len(samples), Window: schema.Duration(o.Window),
	}
	for _, n := range steps() {
		r.Rows = append(r.Rows, judge(n, samples))
	}
	return r
}

func judge(workers int, samples []sample) Row {
	var rates, p50s, ratios []float64
	for _, s := range samples {
		f := s[workers]
		rates, p50s = append(rates, f.PerSecond), append(p50s, float64(f.P50))
		ratios = append(ratios, f.PerSecond/s[1].PerSecond)
	}
	e := stats.Estimated(ratios)
	budget := 1.0
	if workers > 1 {
		budget = efficiency * float64(workers)
	}
	return Row{
		Workers: workers, PerSecond: math.Round(stats.Median(rates)), P50: schema.Duration(stats.Median(p50s)),
		Ideal: float64(min(workers*slots, callers)) / wait.Seconds(),
		Ratio: rounded(e.Median), Low: rounded(e.Low), High: rounded(e.High),
		Budget: budget, OK: e.High >= budget,
	}
}

// rounded keeps what can be told apart, for people who read the JSON.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// Print writes r as a table for people.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "workers\tper second\tof ideal\tp50\tratio to 1 worker [95 %]\tat least")
	for _, row := range r.Rows {
		verdict := "ok"
		if !row.OK {
			verdict = "TOO LITTLE"
		}
		fmt.Fprintf(t, "%d\t%.0f\t%.0f %%\t%v\t%.2f [%.2f %.2f]\t%.1f %s\n", row.Workers, row.PerSecond,
			100*row.PerSecond/row.Ideal, row.P50.Std().Round(wait/1000), row.Ratio, row.Low, row.High, row.Budget, verdict)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	_, err := fmt.Fprintf(w, "\nhooks that wait %v, %d at once per worker, %d callers; %d repetitions of %v; %v\n",
		r.Wait, r.Slots, r.Callers, r.Repetitions, r.Window, r.Machine)
	return err
}
