package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
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

// Pictures writes every plot of the document into the folder dir, and returns the file names.
func Pictures(dir string, d *Document) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a directory for the pictures: %w", err)
	}
	var names []string
	used := map[string]int{}
	for _, p := range d.Plots {
		name := filed(d.Scenario + " " + p.Title)
		if used[name]++; used[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, used[name])
		}
		picture, err := svg(p, ` xmlns="http://www.w3.org/2000/svg"`)
		if err != nil {
			return names, err
		}
		names = append(names, filepath.Join(dir, name+".svg"))
		if err := os.WriteFile(names[len(names)-1], []byte(picture), 0o644); err != nil {
			return names, fmt.Errorf("writing a picture: %w", err)
		}
	}
	return names, nil
}

// filed returns a text as a file name: letters and digits with dashes between.
func filed(text string) string {
	const longest = 80
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	return strings.Trim(name[:min(len(name), longest)], "-")
}
