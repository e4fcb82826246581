package report

import (
	"fmt"
	"html"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// Markdown writes a document for a page of Markdown, without where and when it was
// made: a page of several says that in one place.
func Markdown(d *result.Document) string {
	var parts []string
	if len(d.Figures) > 0 {
		parts = append(parts, MarkdownTable(figures(d)))
	}
	for _, t := range d.Tables {
		parts = append(parts, titled(t))
	}
	if len(d.Checks) > 0 {
		parts = append(parts, MarkdownTable(checks(d)))
		var wrong strings.Builder
		examples(&wrong, d)
		if wrong.Len() > 0 {
			parts = append(parts, "```\n"+wrong.String()+"```\n")
		}
	}
	for _, note := range d.Notes {
		parts = append(parts, note+"\n")
	}
	return strings.Join(parts, "\n")
}

// long is how many rows a table may have that is not folded up.
const long = 40

// titled is a table with its title and its note. A long one is folded up, as it is
// there to look things up.
func titled(t result.Table) string {
	body := MarkdownTable(t)
	if t.Note != "" {
		body += "\n" + t.Note + "\n"
	}
	if len(t.Rows) > long {
		return fmt.Sprintf("<details><summary>%s (%d rows)</summary>\n\n%s\n</details>\n", html.EscapeString(t.Title), len(t.Rows), body)
	}
	return "**" + t.Title + "**\n\n" + body
}

// MarkdownTable is a table in Markdown, as wide as its widest row, without its
// title and its note.
func MarkdownTable(t result.Table) string {
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
