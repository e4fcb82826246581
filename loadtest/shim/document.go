package shim

import (
	"fmt"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// document fills in what others read of the report, when all else is in it.
func (r *Report) document() {
	t := result.Table{Title: "from exec to exit, absolute, median", Columns: []string{"", "p50", "CPU per call", "page faults"}}
	for _, a := range r.Absolute {
		t.Rows = append(t.Rows, []string{a.Name, a.P50.String(), a.CPU.String(), fmt.Sprintf("%.0f", a.Faults)})
	}
	r.Tables = []result.Table{t}
	size := float64(r.Binary)
	r.Figures = append(r.Figures, result.Figure{Name: "size of agentshim", Unit: "B", Value: size, Low: size, High: size})
	d := r.Daemon
	if d.Calls == 0 {
		return
	}
	r.Tables = append(r.Tables, result.Table{
		Title:   "the daemon",
		Columns: []string{"", ""},
		Rows: [][]string{
			{fmt.Sprintf("%d hooks at once", d.Parallel), fmt.Sprintf("all answered after %v", d.Together)},
			{fmt.Sprintf("%d calls", d.Calls), fmt.Sprintf("%.0f/s, p50 %v, p99 %v", d.PerSecond, d.P50, d.P99)},
			{"memory before and after them", fmt.Sprintf("%.1f MiB, %.1f MiB", mib(d.Before), mib(d.After))},
		},
	})
}
