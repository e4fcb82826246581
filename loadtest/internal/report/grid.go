package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

func figures(d *Document) Table {
	t := Table{Title: "figures", Columns: []string{"figure", "value", "95 % interval", "budget", ""}}
	judged := slices.ContainsFunc(d.Figures, func(f Figure) bool { return f.Budget != nil })
	if !judged {
		t.Columns = t.Columns[:3]
	}
	for _, f := range d.Figures {
		row := []string{f.Name, Text(f), Interval(f), Budget(f), kept(f)}
		t.Rows = append(t.Rows, row[:len(t.Columns)])
	}
	return t
}

func checks(d *Document) Table {
	t := Table{Title: "checks", Columns: []string{"check", "seen", "wrong", ""}}
	for _, c := range d.Checks {
		t.Rows = append(t.Rows, []string{c.Name, count(c.Seen), count(c.Wrong), held(c)})
	}
	return t
}

// grid writes a table with columns of the needed width. Numbers are aligned to the right.
func grid(w io.Writer, t Table) error {
	columns := len(t.Columns)
	for _, row := range t.Rows {
		columns = max(columns, len(row))
	}
	widths, right := make([]int, columns), make([]bool, columns)
	for i := range columns {
		widths[i], right[i] = measured(t, i)
	}
	var b strings.Builder
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right[i] {
				line.WriteString(pad + cell + "   ")
			} else {
				line.WriteString(cell + pad + "   ")
			}
		}
		fmt.Fprintln(&b, strings.TrimRight(line.String(), " "))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("printing a table: %w", err)
	}
	return nil
}

// measured returns the width of a column, and whether it has numbers.
func measured(t Table, column int) (width int, numbers bool) {
	numbers = true
	for i, row := range append([][]string{t.Columns}, t.Rows...) {
		if column >= len(row) {
			continue
		}
		width = max(width, utf8.RuneCountInString(row[column]))
		if i > 0 && !numeric(row[column]) {
			numbers = false
		}
	}
	return width, numbers && len(t.Rows) > 0
}

// numeric reports whether a cell is a number with at most a unit after it, or a placeholder
// for a missing number.
func numeric(cell string) bool {
	const words = 3 // "≤ 2 ms"
	if len(strings.Fields(cell)) > words {
		return false
	}
	for _, r := range strings.TrimLeft(cell, "+-−≤≥<>~ ") {
		return unicode.IsDigit(r) || r == '–'
	}
	return true
}

// MarkdownTable returns a table in Markdown, as wide as its widest row, without its title
// and its note.
func MarkdownTable(t Table) string {
	columns := len(t.Columns)
	for _, row := range t.Rows {
		columns = max(columns, len(row))
	}
	var b strings.Builder
	line := func(cells []string) {
		for i := range columns {
			cell := ""
			if i < len(cells) {
				cell = strings.NewReplacer("|", `\|`, "\n", " ").Replace(cells[i])
			}
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|\n")
	}
	line(t.Columns)
	b.WriteString(strings.Repeat("|---", columns) + "|\n")
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}
