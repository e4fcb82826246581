package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarkdownTable(t *testing.T) {
	const want = `|  | a\|b |  |
|---|---|---|
| one |  |  |
| two | 2 | more |
`
	got := MarkdownTable(Table{Title: "Kinds", Columns: []string{"", "a|b"}, Rows: [][]string{{"one"}, {"two", "2", "more"}}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
