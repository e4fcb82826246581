package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/report/svg"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

//go:embed report.html.tmpl
var page string

// HTML writes documents as one page. It fetches nothing, runs no script, and
// says so to the browser; it is light or dark as its reader's system is.
func HTML(w io.Writer, docs ...*result.Document) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"figures": figures, "checks": checks, "circumstances": circumstances, "summary": Summary,
		"numeric": numbers, "bad": bad, "careful": careful, "picture": picture,
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("reading the report's template: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, struct {
		Docs  []*result.Document
		Style template.CSS
	}{docs, template.CSS(svg.Style())}); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// picture is a plot as a part of the page; what is in it was escaped when it
// was drawn.
func picture(p result.Plot) template.HTML { return template.HTML(svg.Inline(p)) }

// numbers reports whether a column of a table is one of numbers.
func numbers(t result.Table, column int) bool {
	_, yes := measured(t, column)
	return yes
}

// careful reports whether a note must not be missed.
func careful(note string) bool { return strings.HasPrefix(note, "CAREFUL") }

// bad reports whether a cell says that something is wrong.
func bad(cell string) bool {
	for _, word := range []string{"VIOLATION", "OVER BUDGET", "NOT TESTED", "worse", "not tested"} {
		if strings.HasPrefix(cell, word) {
			return true
		}
	}
	return false
}
