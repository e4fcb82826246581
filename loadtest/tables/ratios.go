package tables

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/report"
	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
)

// many is how many callers there are where there is more than one.
const many = 16

// budgets are the ratios that have budgets: to a bare request-reply, of the queue,
// and of a program to another one.
func budgets(dir string) (string, error) {
	var parts []string
	for _, of := range []struct {
		run, title string
		has        func(bench.Row) bool
	}{
		{"bench", "A call, as so many bare request-replies of the same repetition", func(r bench.Row) bool { return !external(r.Name) }},
		{"state", "The queue of injections", func(bench.Row) bool { return true }},
		{"shim", "`agentshim hook` from exec to exit, as so many runs of a Go program that makes one request on a unix socket", func(bench.Row) bool { return true }},
	} {
		var r ratios
		there, err := read(dir, of.run, &r)
		if err != nil {
			return "", err
		}
		if there {
			parts = append(parts, "**"+of.title+"**\n\n"+report.MarkdownTable(pivoted(r.Rows, of.has)))
		}
	}
	return strings.Join(parts, "\n"), nil
}

// external reports whether a row is of what people use instead.
func external(name string) bool {
	return strings.Contains(name, "HTTP") || strings.HasPrefix(name, "command hook")
}

// pivoted puts the rows of one name into one line.
func pivoted(rows []bench.Row, has func(bench.Row) bool) result.Table {
	t := result.Table{Columns: []string{"", "p50, 1 caller", "p50, 16 callers", "throughput, 16 callers"}}
	at := map[string]int{}
	for _, r := range rows {
		if !has(r) {
			continue
		}
		i, ok := at[r.Name]
		if !ok {
			i = len(t.Rows)
			at[r.Name] = i
			t.Rows = append(t.Rows, make([]string, len(t.Columns)))
			t.Rows[i][0] = r.Name
		}
		t.Rows[i][column(r)] = r.Cell()
	}
	for i := len(t.Columns) - 1; i > 0; i-- {
		if !slices.ContainsFunc(t.Rows, func(row []string) bool { return row[i] != "" }) {
			t = without(t, i)
		}
	}
	return t
}

func column(r bench.Row) int {
	switch {
	case r.Callers == 1:
		return 1
	case r.Metric == "p50":
		return 2
	}
	return 3
}

// without is a table without a column.
func without(t result.Table, column int) result.Table {
	t.Columns = slices.Delete(slices.Clone(t.Columns), column, column+1)
	for i, row := range t.Rows {
		t.Rows[i] = slices.Delete(row, column, column+1)
	}
	return t
}

// webhooks are the ratios of what people use instead, and to it.
func webhooks(dir string) (string, error) {
	var r ratios
	if there, err := read(dir, "bench", &r); !there {
		return "", err
	}
	return report.MarkdownTable(pivoted(r.Rows, func(r bench.Row) bool { return external(r.Name) })), nil
}

// costs is what all ways to ask take in time, and in time of processors.
func costs(dir string) (string, error) {
	var r ratios
	if there, err := read(dir, "bench", &r); !there {
		return "", err
	}
	t := result.Table{Columns: []string{
		"", "p50, 1 caller", "p99", "CPU of a call", "p50, 16 callers", "p99", "calls", "CPU of a call",
	}}
	at := map[string]int{}
	for _, a := range r.Absolute {
		i, ok := at[a.Name]
		if !ok {
			i = len(t.Rows)
			at[a.Name] = i
			t.Rows = append(t.Rows, make([]string, len(t.Columns)))
			t.Rows[i][0] = a.Name
		}
		p50, p99 := units.Value(a.P50.Std().Seconds(), "s"), units.Value(a.P99.Std().Seconds(), "s")
		if a.Callers == many {
			copy(t.Rows[i][4:], []string{p50, p99, units.Value(a.PerSecond, "/s"), taken(a.Costs)})
		} else {
			copy(t.Rows[i][1:], []string{p50, p99, taken(a.Costs)})
		}
	}
	return report.MarkdownTable(t), nil
}

// taken is the time of processors of one call: of all processes, and of those besides
// the caller.
func taken(costs map[string]bench.Cost) string {
	// Sums of whole nanoseconds: those of seconds would depend on the order of the roles.
	var all, others time.Duration
	for role, c := range costs {
		all += c.CPU.Std()
		if role != roles.Requester {
			others += c.CPU.Std()
		}
	}
	return fmt.Sprintf("%s (%s)", units.Value(all.Seconds(), "s"), units.Value(others.Seconds(), "s"))
}
