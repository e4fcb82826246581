package redact

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// plainly is [Echoes.Without] with a separate search for each text.
func plainly(s string, texts []string) string {
	hit := make([]bool, len(s))  // removed bytes
	seam := make([]bool, len(s)) // where a removed part begins directly after another
	for i := range seam {
		seam[i] = true
	}
	for _, text := range texts {
		for i := 0; i+len(text) <= len(s); i++ {
			if s[i:i+len(text)] == text {
				for k := i; k < i+len(text); k++ {
					hit[k] = true
					seam[k] = seam[k] && k == i
				}
			}
		}
	}
	var b strings.Builder
	for i := range len(s) {
		switch {
		case !hit[i]:
			b.WriteByte(s[i])
		case i == 0 || !hit[i-1] || seam[i]:
			b.WriteString(Removed)
		}
	}
	return b.String()
}

func TestAllTextsAreFoundAtOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[ab]{1,5}|[abc]{4,9}`), 0, 8).Draw(rt, "texts")
		s := rapid.StringMatching(`[abc]{0,40}`).Draw(rt, "s")
		if got, want := newEchoes(slices.Clone(texts)).Without(s), plainly(s, texts); got != want {
			rt.Errorf("%q without %q is %q, want %q", s, texts, got, want)
		}
	})
}

// Only the beginning of a long text is searched, and the text's whole length is removed.
func TestALongTextIsKnownByItsBeginning(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "%05d", i)
	}
	long := b.String()
	e := newEchoes([]string{long, long[:2000] + "x"})
	for s, want := range map[string]string{
		"<" + long + ">":          "<" + Removed + ">",
		"<" + long[:1500]:         "<" + Removed,
		"<" + long[:1000] + ">":   "<" + long[:1000] + ">", // too short for an echo
		long + "-" + long[:10000]: Removed + "-" + Removed,
	} {
		if got := e.Without(s); got != want {
			t.Errorf("of %.20q… is left %.60q, want %.60q", s, got, want)
		}
	}
}

// If there are too many texts to search, everything is removed.
func TestTooManyTextsLeaveNothing(t *testing.T) {
	t.Parallel()
	r, err := Parse([]string{"**.env.*"})
	if err != nil {
		t.Fatal(err)
	}
	doc := map[string]any{"tool_input": map[string]any{"env": values(200_000), "command": "echo 123456"}}
	e := r.Clean(doc)
	if fmt.Sprint(doc) != "map[tool_input:[removed]]" || e.Without("it failed: 123456") != Removed || e.Without("") != "" {
		t.Errorf("of all of it is left %.200v", doc)
	}
}

// values returns members with distinct texts.
func values(n int) map[string]any {
	all := make(map[string]any, n)
	for i := range n {
		all[fmt.Sprint("name", i)] = fmt.Sprintf("%06d-%d", i, i*7919%999983)
	}
	return all
}

// Redaction takes linear time, not quadratic: eight times as many values would take 64
// times as long.
func TestRedactionTakesTimeInProportion(t *testing.T) {
	for name, c := range map[string]struct {
		rules []string
		doc   func(n int) map[string]any
	}{
		"values that are named, and texts in which they may stand": {[]string{"**.env.*"}, func(n int) map[string]any {
			return map[string]any{"tool_input": map[string]any{"env": values(n), "list": anyOf(values(n))}}
		}},
		"objects in objects, under rules with several **": {[]string{"**.a.**.b.**.c", "**.**.x", "a.**.**.y"}, func(n int) map[string]any {
			doc := map[string]any{}
			for range n / 8 {
				doc = map[string]any{"a": doc, "b": "text"}
			}
			return doc
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Parse(c.rules)
			if err != nil {
				t.Fatal(err)
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			took := func(n int) time.Duration {
				least := time.Hour
				for range 3 {
					doc := c.doc(n)
					start := worked(t)
					r.Clean(doc)
					least = min(least, worked(t)-start)
				}
				return least
			}
			small, large := took(4000), took(32_000)
			if large > 24*small {
				t.Errorf("8 times as much took %.1f times as long: %v and %v", float64(large)/float64(small), small, large)
			}
		})
	}
}

// worked returns the processor time of this thread, so that other processes do not count.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Nano())
}

// anyOf returns the values as a list.
func anyOf(m map[string]any) []any { return slices.Collect(maps.Values(m)) }

func BenchmarkClean(b *testing.B) {
	r, err := Parse([]string{"**.env.*"})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{10_000, 40_000, 160_000, 640_000} {
		b.Run(fmt.Sprint(n, " values"), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				doc := map[string]any{"tool_input": map[string]any{"env": values(n)}, "tool_output": strings.Repeat("000001-7919 ", 1000)}
				b.StartTimer()
				r.Clean(doc)
			}
		})
	}
}
