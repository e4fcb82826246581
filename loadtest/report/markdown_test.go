package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

func TestMarkdownTable(t *testing.T) {
	const want = `|  | a\|b |  |
|---|---|---|
| one |  |  |
| two | 2 | more |
`
	got := MarkdownTable(result.Table{Title: "Kinds", Columns: []string{"", "a|b"}, Rows: [][]string{{"one"}, {"two", "2", "more"}}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
