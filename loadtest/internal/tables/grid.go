package tables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// A grid is a table of some figures of one run.
type grid struct {
	run     string
	title   string // above the table; empty: none
	columns []label
	rows    []label
}

// A label is the text for a part of a figure's name. The name of a figure is the name of
// its row, with the name of its column in the place of %s.
type label struct{ text, name string }

// single returns the column of a grid whose rows are whole names.
func single() []label { return []label{{"value", ""}} }

// perCallers returns the columns of figures that are measured with one caller and with 16.
func perCallers() []label {
	return []label{{"p50, 1 caller", "p50, 1 caller"}, {"p50, 16 callers", "p50, 16 callers"}, {"throughput, 16 callers", "throughput, 16 callers"}}
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
	if there, err := read(dir, g.run, &d); !there {
		return "", err
	}
	t := report.Table{Columns: []string{""}}
	filled := make([]bool, len(g.columns))
	for _, column := range g.columns {
		t.Columns = append(t.Columns, column.text)
	}
	for _, row := range g.rows {
		cells := []string{row.text}
		for i, column := range g.columns {
			cell := figure(&d, strings.Replace(row.name, "%s", column.name, 1))
			filled[i] = filled[i] || cell != ""
			cells = append(cells, cell)
		}
		if strings.Join(cells[1:], "") == "" {
			return "", fmt.Errorf("%s.json has no figure %q; correct its name in loadtest/internal/tables/views.go", g.run, row.name)
		}
		t.Rows = append(t.Rows, cells)
	}
	if i := slices.Index(filled, false); i >= 0 {
		return "", fmt.Errorf("%s.json has no figures of the column %q; correct its name in loadtest/internal/tables/views.go", g.run, g.columns[i].name)
	}
	body := report.MarkdownTable(t)
	if g.title != "" {
		body = "**" + g.title + "**\n\n" + body
	}
	return body, nil
}

// figure returns the value of a figure with its interval and its budget; empty if the run has no such figure.
func figure(d *report.Document, name string) string {
	i := slices.IndexFunc(d.Figures, func(f report.Figure) bool { return f.Name == name })
	if i < 0 {
		return ""
	}
	f := d.Figures[i]
	words := []string{strings.TrimSuffix(report.Text(f), " ×"), report.Interval(f), strings.TrimSuffix(report.Budget(f), " ×")}
	if !f.OK() {
		words = append(words, "OVER BUDGET")
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}
