package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

func TestMarkdown(t *testing.T) {
	d := &result.Document{
		Figures: []result.Figure{result.Figured("p50", "s", result.Lower, []float64{0.002}).Within(0.001)},
		Tables:  []result.Table{{Title: "Kinds", Columns: []string{"", "a|b"}, Rows: [][]string{{"one"}, {"two", "2", "more"}}, Note: "Mind the gap."}},
		Checks:  []result.Check{{Name: "all is right", Seen: 3}},
		Notes:   []string{"It rained."},
	}
	const want = `| figure | value | 95 % interval | budget |  |
|---|---|---|---|---|
| p50 | 2 ms |  | ≤ 1 ms | OVER BUDGET |

**Kinds**

|  | a\|b |  |
|---|---|---|
| one |  |  |
| two | 2 | more |

Mind the gap.

| check | seen | wrong |  |
|---|---|---|---|
| all is right | 3 | 0 | ok |

It rained.
`
	if diff := cmp.Diff(want, Markdown(d)); diff != "" {
		t.Error(diff)
	}
}

func TestALongTableIsFoldedUp(t *testing.T) {
	d := &result.Document{Tables: []result.Table{{Title: "Faults & more", Columns: []string{"at"}, Rows: slices.Repeat([][]string{{"1 s"}}, long+1)}}}
	got := Markdown(d)
	if !strings.HasPrefix(got, "<details><summary>Faults &amp; more (41 rows)</summary>\n\n| at |\n") || !strings.HasSuffix(got, "| 1 s |\n\n</details>\n") {
		t.Errorf("it is\n%s", got)
	}
}
