package tables

import (
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
)

// many is the number of callers where there is more than one.
const many = 16

// A column shows one absolute figure of a row of bench.
type column struct {
	title   string
	callers int
	show    func(bench.Absolute) string
}

func p50(a bench.Absolute) string       { return report.Value(a.P50.Std().Seconds(), "s") }
func p99(a bench.Absolute) string       { return report.Value(a.P99.Std().Seconds(), "s") }
func perSecond(a bench.Absolute) string { return report.Value(a.PerSecond, "/s") }

// costs returns the times of all ways to make a call, and their CPU time.
func costs(dir string) (string, error) {
	return absolute(dir, []label{
		{"bare NATS, another process", "raw"},
		{"bare NATS, responder in the server's process", "floor-in"},
		{"bare NATS, that responder asks another process", "floor-out"},
		{"no hook matches", "no hook"},
		{"1 hook inside the broker", "broker, 1 hook"},
		{"8 hooks inside the broker", "broker, 8 hooks"},
		{"1 hook on a worker", "pool, 1 hook"},
		{"8 hooks on a worker", "pool, 8 hooks"},
		{"2 hooks, on workers of two pools", "two pools"},
		{"webhook, 1 hook", "webhook, 1 hook"},
		{"webhook, 8 hooks", "webhook, 8 hooks"},
		{"webhook in two stages, 1 hook", "two HTTP stages, 1 hook"},
		{"webhook in two stages, 8 hooks", "two HTTP stages, 8 hooks"},
		{"command hook: one empty program per call", "command per call"},
	}, []column{
		{"p50, 1 caller", 1, p50}, {"p99", 1, p99}, {"CPU per call", 1, cpu},
		{"p50, 16 callers", many, p50}, {"p99", many, p99}, {"calls", many, perSecond}, {"CPU per call", many, cpu},
	})
}

// summary returns the few figures that README.md shows.
func summary(dir string) (string, error) {
	return absolute(dir, []label{
		{"bare NATS, one other process", "raw"},
		{"no hook matches", "no hook"},
		{"1 hook inside the broker", "broker, 1 hook"},
		{"8 hooks inside the broker", "broker, 8 hooks"},
		{"1 hook on a worker", "pool, 1 hook"},
		{"8 hooks on a worker", "pool, 8 hooks"},
		{"HTTP webhook in Go, 1 hook", "webhook, 1 hook"},
		{"command hook: one empty program per call", "command per call"},
	}, []column{
		{"median", 1, p50}, {"99 %", 1, p99},
		{"calls per second, 16 callers", many, func(a bench.Absolute) string { return report.Value(a.PerSecond, "") }},
	})
}

// absolute returns a table of absolute figures. Rows without any figure are left out.
func absolute(dir string, rows []label, columns []column) (string, error) {
	var r bench.Report
	if there, err := read(dir, "bench", &r); !there {
		return "", err
	}
	t := report.Table{Columns: []string{""}}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.title)
	}
	for _, row := range rows {
		cells, some := []string{row.text}, false
		for _, c := range columns {
			cell := ""
			for _, a := range r.Absolute {
				if a.Name == row.name && a.Callers == c.callers {
					cell, some = c.show(a), true
				}
			}
			cells = append(cells, cell)
		}
		if some {
			t.Rows = append(t.Rows, cells)
		}
	}
	return report.MarkdownTable(t), nil
}

// cpu returns the CPU time of one call: of all processes, and without the caller.
func cpu(a bench.Absolute) string {
	// Sums of whole nanoseconds: those of seconds would depend on the order of the roles.
	var all, others time.Duration
	for role, c := range a.Costs {
		all += c.CPU.Std()
		if role != roles.Requester {
			others += c.CPU.Std()
		}
	}
	return fmt.Sprintf("%s (%s)", report.Value(all.Seconds(), "s"), report.Value(others.Seconds(), "s"))
}
