package report

import (
	"fmt"
	"io"
	"strings"
)

// Text returns a figure with its unit.
func Text(f Figure) string { return Value(f.Value, f.Unit) }

// Print writes documents for a terminal.
func Print(w io.Writer, docs ...*Document) error {
	var b strings.Builder
	for i, d := range docs {
		if i > 0 {
			b.WriteString("\n\n")
		}
		if err := printed(&b, d); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func printed(w *strings.Builder, d *Document) error {
	fmt.Fprintln(w, d.Title)
	if len(d.Figures) > 0 {
		fmt.Fprintln(w)
		if err := grid(w, figures(d)); err != nil {
			return err
		}
	}
	for _, t := range d.Tables {
		fmt.Fprintf(w, "\n%s\n", t.Title)
		if err := grid(w, t); err != nil {
			return err
		}
		if t.Note != "" {
			fmt.Fprintln(w, t.Note)
		}
	}
	if len(d.Checks) > 0 {
		fmt.Fprintln(w)
		if err := grid(w, checks(d)); err != nil {
			return err
		}
		examples(w, d)
	}
	if len(d.Notes) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(d.Notes, "\n"))
	}
	fmt.Fprintln(w)
	for _, c := range circumstances(d) {
		fmt.Fprintf(w, "%s: %s\n", c[0], c[1])
	}
	if s := Summary(d); s != "" {
		fmt.Fprintln(w, s)
	}
	return nil
}

// examples writes the examples of failed checks, one a line.
func examples(w *strings.Builder, d *Document) {
	for _, c := range d.Checks {
		for _, example := range c.Examples {
			fmt.Fprintf(w, "%s: %s\n", c.Name, example)
		}
	}
}
