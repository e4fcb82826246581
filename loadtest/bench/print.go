package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes r as tables for people: the ratios, then the absolute figures.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "ratio to the bare request-reply [95 %] budget\tp50, 1 caller\tp50, 16 callers\tthroughput, 16 callers")
	for i, row := range r.Rows {
		if i == 0 || r.Rows[i-1].Name != row.Name {
			fmt.Fprintf(t, "%s%s", newline(i), row.Name)
		}
		fmt.Fprintf(t, "\t%s", row.cell())
	}
	fmt.Fprintln(t, "\n\nabsolute, median\tp50, 1 caller (p99)\tp50, 16 callers (p99)\tthroughput, 16 callers")
	for i := 0; i+1 < len(r.Absolute); i += 2 {
		one, many := r.Absolute[i], r.Absolute[i+1]
		fmt.Fprintf(t, "%s\t%v (%v)\t%v (%v)\t%.0f/s\n", one.Name, one.P50, one.P99, many.P50, many.P99, many.PerSecond)
	}
	fmt.Fprintln(t, "\none call takes, with 16 callers\tµs of CPU\tallocations\twaits of threads")
	for i := 1; i < len(r.Absolute); i += 2 {
		a := r.Absolute[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", a.Name, listed(a.Costs, microseconds), listed(a.Costs, allocations), listed(a.Costs, waits))
	}
	fmt.Fprintf(t, "\n%d repetitions of %v; %v\n", r.Repetitions, r.Window, r.Machine)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func newline(i int) string {
	if i == 0 {
		return ""
	}
	return "\n"
}

// cell is a row's figure with its interval, and its budget if it has one.
func (r Row) cell() string {
	s := fmt.Sprintf("%.2f [%.2f %.2f]", r.Ratio, r.Low, r.High)
	if r.Budget == nil {
		return s
	}
	bound := "≤"
	if r.Metric == throughput {
		bound = "≥"
	}
	verdict := "ok"
	if !r.OK {
		verdict = "OVER BUDGET"
	}
	return fmt.Sprintf("%s %s %.2f %s", s, bound, *r.Budget, verdict)
}
