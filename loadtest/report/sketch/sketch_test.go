package sketch

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// ramp is a plot of two lines that grow with time.
func ramp(n int, log bool) result.Plot {
	p := result.Plot{Title: "Latency", X: result.Axis{Label: "time", Unit: "s"}, Y: result.Axis{Unit: "s", Log: log}}
	low, high := result.Line{Name: "p50"}, result.Line{Name: "p99"}
	for i := 1; i <= n; i++ {
		low.X, low.Y = append(low.X, float64(i)), append(low.Y, float64(i)*1e-3)
		high.X, high.Y = append(high.X, float64(i)), append(high.Y, float64(i)*1e-2)
	}
	p.Lines = []result.Line{low, high}
	return p
}

func TestAPictureOfLetters(t *testing.T) {
	p := ramp(8, false)
	p.Marks = []result.Mark{{X: 4, Label: "kill"}}
	want := `Latency: █ p50  ▒ p99
80 ms │       ▒
      │     ▒▒▒
40 ms │   ▒▒▒▒▒
      │▒▒▒▒▒▒▒▒
    0 └────────
           ▲    ▲ fault
       0 time 8 s
`
	got := Areas(p, Size{Width: 8, Height: 4})
	var trimmed strings.Builder
	for line := range strings.Lines(got) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if d := cmp.Diff(want, trimmed.String()); d != "" {
		t.Errorf("%s\n%s", d, got)
	}
}

func TestEveryPictureKeepsToItsFrame(t *testing.T) {
	for _, n := range []int{1, 3, 20, 500} {
		for _, log := range []bool{false, true} {
			s := Size{Width: 60, Height: 9}
			got := Areas(ramp(n, log), s)
			rows := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
			if len(rows) != s.Height+3 {
				t.Fatalf("%d points came to %d rows:\n%s", n, len(rows), got)
			}
			for _, row := range rows[1 : s.Height+1] {
				_, area, _ := strings.Cut(row, "│")
				if utf8.RuneCountInString(area) != s.Width {
					t.Errorf("a row of %d points is %d wide:\n%s", n, utf8.RuneCountInString(area), got)
				}
			}
			if strings.Contains(got, "log") != log || !strings.Contains(rows[1], "▒") {
				t.Errorf("%d points:\n%s", n, got)
			}
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	for name, p := range map[string]result.Plot{
		"no lines":                  {},
		"a line without points":     {Lines: []result.Line{{Name: "p50"}}},
		"zeros on a logarithm":      {Y: result.Axis{Log: true}, Lines: []result.Line{{X: []float64{1}, Y: []float64{0}}}},
		"only zeros":                {Lines: []result.Line{{X: []float64{1}, Y: []float64{0}}}},
		"what is endlessly far off": {Lines: []result.Line{{X: []float64{1}, Y: []float64{math.NaN()}}}},
	} {
		if got := Areas(p, Size{Width: 20, Height: 5}); got != "" {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

func TestPointsAreAsWideAsTheyAreApart(t *testing.T) {
	line := result.Line{Name: "p50", X: []float64{0.5, 1.5, 3.5}, Y: []float64{1, 1, 1}} // of 2 to 3 nothing is known
	got := Areas(result.Plot{X: result.Axis{Unit: "s"}, Lines: []result.Line{line}}, Size{Width: 35, Height: 1})
	_, area, _ := strings.Cut(got, "│")
	area, _, _ = strings.Cut(area, "\n")
	if full := strings.Count(area, "█"); full < 25 || full == 35 || !strings.HasPrefix(area, "█") {
		t.Errorf("three of four seconds are %d columns of 35:\n%s", full, got)
	}
}
