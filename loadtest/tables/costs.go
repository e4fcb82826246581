package tables

import (
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/report"
	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
)

// many is the number of callers where there is more than one.
const many = 16

// costly is what views read of the report of bench besides its figures.
type costly struct {
	result.Document
	Absolute []bench.Absolute `json:"absolute"`
}

// ways are the labels of the rows of bench that are measured on the clock.
func ways() []label {
	return []label{
		{"bare NATS, another process", "raw"},
		{"bare NATS, responder in the server's process", "bare, inside the server's process"},
		{"bare NATS, that responder asks another process", "bare, from there to another process"},
		{"no hook matches", "no hook matches"},
		{"1 hook inside the broker", "1 hook inside broker"},
		{"8 hooks inside the broker", "8 hooks inside broker"},
		{"1 hook on a worker", "1 hook of a remote pool"},
		{"8 hooks on a worker", "8 hooks of a remote pool"},
		{"2 hooks, on workers of two pools", "two pools in sequence"},
		{"webhook, 1 hook", "HTTP webhook, 1 hook"},
		{"webhook, 8 hooks", "HTTP webhook, 8 hooks"},
		{"webhook in two stages, 1 hook", "HTTP in two stages, 1 hook"},
		{"webhook in two stages, 8 hooks", "HTTP in two stages, 8 hooks"},
		{"command hook: one empty program per call", "command hook per call"},
	}
}

// costs are the times of all ways on the clock, and their CPU time.
func costs(dir string) (string, error) {
	var r costly
	if there, err := read(dir, "bench", &r); !there {
		return "", err
	}
	t := result.Table{Columns: []string{
		"", "p50, 1 caller", "p99", "CPU per call", "p50, 16 callers", "p99", "calls", "CPU per call",
	}}
	for _, way := range ways() {
		cells := make([]string, len(t.Columns))
		cells[0] = way.text
		for _, a := range r.Absolute {
			p50, p99 := units.Value(a.P50.Std().Seconds(), "s"), units.Value(a.P99.Std().Seconds(), "s")
			switch {
			case a.Name != way.name:
			case a.Callers == many:
				copy(cells[4:], []string{p50, p99, units.Value(a.PerSecond, "/s"), taken(a.Costs)})
			default:
				copy(cells[1:], []string{p50, p99, taken(a.Costs)})
			}
		}
		if cells[1] != "" || cells[4] != "" {
			t.Rows = append(t.Rows, cells)
		}
	}
	return report.MarkdownTable(t), nil
}

// taken is the CPU time of one call: of all processes, and without the caller.
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

// summaryRows are the rows of the table in README.md: its label and the name
// in bench.json.
func summaryRows() []label {
	return []label{
		{"bare NATS, one other process", "raw"},
		{"no hook matches", "no hook matches"},
		{"1 hook inside the broker", "1 hook inside broker"},
		{"8 hooks inside the broker", "8 hooks inside broker"},
		{"1 hook on a worker", "1 hook of a remote pool"},
		{"8 hooks on a worker", "8 hooks of a remote pool"},
		{"HTTP webhook in Go, 1 hook", "HTTP webhook, 1 hook"},
		{"command hook: one empty program per call", "command hook per call"},
	}
}

// summary returns the few figures that README.md shows.
func summary(dir string) (string, error) {
	var r costly
	if there, err := read(dir, "bench", &r); !there {
		return "", err
	}
	t := result.Table{Columns: []string{"", "median", "99 %", "calls per second, 16 callers"}}
	for _, row := range summaryRows() {
		cells := []string{row.text, "", "", ""}
		for _, a := range r.Absolute {
			switch {
			case a.Name == row.name && a.Callers == many:
				cells[3] = units.Value(a.PerSecond, "")
			case a.Name == row.name:
				cells[1], cells[2] = units.Value(a.P50.Std().Seconds(), "s"), units.Value(a.P99.Std().Seconds(), "s")
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return report.MarkdownTable(t), nil
}
