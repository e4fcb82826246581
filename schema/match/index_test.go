package match_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema/match"
)

// An index finds the same as trying all patterns.
func TestAnIndexFindsAllMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`([abé?*]|\[a-b\]|\[!a\]){0,5}(\|([abé?*]|\[ab\]){1,4}){0,2}`)
		var (
			x   match.Index
			all []*match.Matcher
		)
		for _, text := range rapid.SliceOfN(pattern, 0, 12).Draw(t, "patterns") {
			if m, err := match.Compile(text); err == nil {
				x.Add(len(all), m)
				all = append(all, m)
			}
		}
		for _, name := range rapid.SliceOfN(rapid.StringMatching(`[abé]{0,6}`), 1, 8).Draw(t, "names") {
			var want []int
			for i, m := range all {
				if m.Match(name) {
					want = append(want, i)
				}
			}
			if got := x.Find(name); !slices.Equal(got, want) {
				t.Fatalf("%q is found among %v where %v match", name, got, want)
			}
		}
	})
}

func TestAnEmptyIndexFindsNothing(t *testing.T) {
	var x match.Index
	if got := x.Find("Bash"); len(got) > 0 {
		t.Errorf("found %v", got)
	}
}

func BenchmarkIndex10000(b *testing.B) {
	var x match.Index
	for i := range 10_000 {
		m, err := match.Compile("mcp__server" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + "__*|Tool" + string(rune('a'+i)))
		if err != nil {
			b.Fatal(err)
		}
		x.Add(i, m)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(x.Find("Bash")) > 0 {
			b.Fatal("nothing matches")
		}
	}
}
