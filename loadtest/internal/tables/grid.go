package tables

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/loadtest/internal/scale"
)

// A grid is a table of some figures of one run. Columns and rows are pairs of a text and a
// part of a figure's name. The name of a figure is the name of its row, with the name of its
// column in the place of %s.
type grid struct {
	Run           string
	Title         string // above the table; empty: none
	Columns, Rows [][2]string
}

// viewed returns several grids. One whose run has no file is left out.
func viewed(dir string, all []grid) (string, error) {
	var parts []string
	for _, g := range all {
		part, err := g.view(dir)
		if err != nil {
			return "", err
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n"), nil
}

// view returns the grid in Markdown. A row or a column without any figure is an error: its name has changed.
func (g grid) view(dir string) (string, error) {
	var d report.Document
	if there, err := read(dir, g.Run, &d); !there {
		return "", err
	}
	t := report.Table{Columns: []string{""}}
	filled := make([]bool, len(g.Columns))
	for _, column := range g.Columns {
		t.Columns = append(t.Columns, column[0])
	}
	for _, row := range g.Rows {
		cells := []string{row[0]}
		for i, column := range g.Columns {
			cell := figure(&d, strings.Replace(row[1], "%s", column[1], 1))
			filled[i] = filled[i] || cell != ""
			cells = append(cells, cell)
		}
		if strings.Join(cells[1:], "") == "" {
			return "", fmt.Errorf("%s.json has no figure %q; correct its name in loadtest/internal/tables/views.yaml", g.Run, row[1])
		}
		t.Rows = append(t.Rows, cells)
	}
	if i := slices.Index(filled, false); i >= 0 {
		return "", fmt.Errorf("%s.json has no figures of the column %q; correct its name in loadtest/internal/tables/views.yaml", g.Run, g.Columns[i][1])
	}
	body := report.MarkdownTable(t)
	if g.Title != "" {
		body = "**" + g.Title + "**\n\n" + body
	}
	return body, nil
}

// figure returns the value of a figure with its interval and its budget; empty if the run has no such figure.
func figure(d *report.Document, name string) string {
	f, ok := d.Figure(name)
	if !ok {
		return ""
	}
	words := []string{strings.TrimSuffix(report.Text(f), " ×"), report.Interval(f), strings.TrimSuffix(report.Budget(f), " ×")}
	if !f.OK() {
		words = append(words, "OVER BUDGET")
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// A column shows one absolute figure of a row of bench.
type column struct {
	title   string
	callers int
	show    func(bench.Absolute) string
}

// columns returns the columns of the absolute views.
func columns() map[string][]column {
	return map[string][]column{
		"costs": {
			{"p50, 1 caller", 1, p50}, {"p99", 1, p99}, {"CPU per call", 1, cpu},
			{"p50, 16 callers", bench.Many, p50}, {"p99", bench.Many, p99}, {"calls", bench.Many, perSecond}, {"CPU per call", bench.Many, cpu},
		},
		"summary": {
			{"median", 1, p50}, {"99 %", 1, p99},
			{"calls per second, 16 callers", bench.Many, func(a bench.Absolute) string { return report.Value(a.PerSecond, "") }},
		},
	}
}

func p50(a bench.Absolute) string       { return report.Value(a.P50.Std().Seconds(), "s") }
func p99(a bench.Absolute) string       { return report.Value(a.P99.Std().Seconds(), "s") }
func perSecond(a bench.Absolute) string { return report.Value(a.PerSecond, "/s") }

// absolute returns a table of absolute figures. Rows without any figure are left out.
func absolute(dir string, rows [][2]string, columns []column) (string, error) {
	var r bench.Report
	if there, err := read(dir, "bench", &r); !there {
		return "", err
	}
	t := report.Table{Columns: []string{""}}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.title)
	}
	for _, row := range rows {
		cells, some := []string{row[0]}, false
		for _, c := range columns {
			cell := ""
			for _, a := range r.Absolute {
				if a.Name == row[1] && a.Callers == c.callers {
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

// stepName returns the name of a figure of a series at a step.
func stepName(series, of, step, figure string) string {
	between := ", "
	if series == of+"s" {
		between = ": "
	}
	if step != "1" {
		of += "s"
	}
	return series + between + step + " " + of + ", " + figure
}

// growth shows how the cost of a call grows: the first and the last step of each series of scale.
func growth(dir string, all [][5]string) (string, error) {
	var d report.Document
	if there, err := read(dir, "scale", &d); !there {
		return "", err
	}
	t := report.Table{Columns: []string{"what grows", "from", "to", "CPU per call", "last : first"}}
	for _, s := range all {
		text, name, first, last, of := s[0], s[1], s[2], s[3], s[4]
		var found []report.Figure
		for _, name := range []string{stepName(name, of, first, "CPU of a call"), stepName(name, of, last, "CPU of a call"), stepName(name, of, last, "CPU : the first")} {
			f, ok := d.Figure(name)
			if !ok {
				return "", fmt.Errorf("scale.json has no figure %q; correct the series in loadtest/internal/tables/views.yaml", name)
			}
			found = append(found, f)
		}
		t.Rows = append(t.Rows, []string{text, first, last, report.Text(found[0]) + " → " + report.Text(found[1]), figure(&d, found[2].Name)})
	}
	return report.MarkdownTable(t), nil
}

// needs returns the machines and rates that a million agents need, calculated from
// scale.json.
func needs(dir string) (string, error) {
	var r scale.Report
	if there, err := read(dir, "scale", &r); !there {
		return "", err
	}
	return report.MarkdownTable(scale.Default().Needed(&r.Units)), nil
}
