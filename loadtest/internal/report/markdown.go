package report

import "strings"

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
