package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed report.html.tmpl
var page string

// HTML writes documents as one page, which fetches nothing and runs no script. It follows
// the reader's light or dark mode.
func HTML(w io.Writer, docs ...*Document) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"figures": figures, "checks": checks, "circumstances": circumstances, "summary": Summary,
		"numeric": numbers, "bad": bad, "careful": careful,
		"picture": func(p Plot) (template.HTML, error) { // svg escapes the texts
			body, err := svg(p, "")
			return template.HTML(body), err
		},
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("reading the report's template: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, struct{ Docs []*Document }{docs}); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// numbers reports whether a column of a table has numbers.
func numbers(t Table, column int) bool {
	_, yes := measured(t, column)
	return yes
}

// careful reports whether a note must not be missed.
func careful(note string) bool { return strings.HasPrefix(note, "CAREFUL") }

// bad reports whether a cell reports an error.
func bad(cell string) bool {
	for _, word := range []string{"VIOLATION", "OVER BUDGET", "NOT TESTED", "worse", "not tested"} {
		if strings.HasPrefix(cell, word) {
			return true
		}
	}
	return false
}
