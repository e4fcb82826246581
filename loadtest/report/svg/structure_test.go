package svg

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// said are the texts of a class, from left to right as they were written.
func said(texts []text, class string) []string {
	var all []string
	for _, t := range texts {
		if t.class == class {
			all = append(all, t.what)
		}
	}
	return all
}

func TestAPictureHasAllItsParts(t *testing.T) {
	p := result.Plot{
		Title: "Latency over time", X: result.Axis{Label: "time", Unit: "s"}, Y: result.Axis{Label: "latency", Unit: "s"},
		Lines: []result.Line{
			{Name: "p50", X: []float64{0, 10}, Y: []float64{0.001, 0.002}, Low: []float64{0.0005, 0.001}, High: []float64{0.002, 0.004}},
			{Name: "p99", X: []float64{0, 10}, Y: []float64{0.003, 0.004}},
		},
		Marks: []result.Mark{{X: 2, Label: "kill -9 worker-1"}, {X: 7, Until: 9, Label: "a cut"}, {X: 5, Label: "kill -9 worker-1"}},
	}
	texts, _, classes := parsed(t, drawnPlot(t, p))
	if got := said(texts, "h"); !slices.Equal(got, []string{"Latency over time"}) {
		t.Errorf("the title is %q", got)
	}
	if got := said(texts, "l"); !slices.Equal(got, []string{"p50", "p99", "latency (ms)", "time (s)"}) {
		t.Errorf("the legend and the axes are %q", got)
	}
	want := []string{"0", "1", "2", "3", "4", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "1, 2: kill -9 worker-1", "3: a cut"}
	if got := said(texts, "t"); !slices.Equal(got, want) {
		t.Errorf("the ticks and the key are %q", got)
	}
	if got := said(texts, "b"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("the marks are %q", got)
	}
	for what, n := range map[string]int{"line.mark": 3, "rect.during": 1, "path.a0": 1, "path.a1": 0, "path.c0": 2, "path.c1": 2, "circle.d0": 3} {
		if classes[what] != n {
			t.Errorf("there are %d %s, want %d", classes[what], what, n)
		}
	}
}

// TestManyMarksLeaveTheDataToBeSeen has more of them than can be told apart one by one.
func TestManyMarksLeaveTheDataToBeSeen(t *testing.T) {
	of := func(n int) (labels []string, lines string) {
		p := result.Plot{
			Title: "Faults", X: result.Axis{Label: "time", Unit: "s"}, Y: result.Axis{Label: "latency", Unit: "s"},
			Lines: []result.Line{{Name: "p50", X: []float64{0, 600}, Y: []float64{0.001, 0.002}}},
		}
		for i := range n {
			p.Marks = append(p.Marks, result.Mark{X: float64(i), Label: fmt.Sprintf("slow worker-1 to %d B/s", i), Group: []string{"slow of a worker", "kill of a worker"}[i%2]})
		}
		picture := drawnPlot(t, p)
		texts, _, _ := parsed(t, picture)
		for _, text := range said(texts, "t") {
			if strings.Contains(text, "worker") {
				labels = append(labels, text)
			}
		}
		return labels, regexp.MustCompile(`(?m)^<line class="mark".*$`).FindString(picture)
	}
	few, long := of(crowd)
	if len(few) != crowd {
		t.Errorf("the key of some marks is %q", few)
	}
	many, short := of(crowd + 1)
	if len(many) != 2 || !strings.Contains(many[0], "slow of a worker") || !strings.Contains(many[1], "kill of a worker") {
		t.Errorf("the key of many marks is %q", many)
	}
	if tall(t, long) != high || tall(t, short) != foot {
		t.Errorf("the lines are %q and %q", long, short)
	}
}

// tall is how high a line is.
func tall(t *testing.T, line string) float64 {
	t.Helper()
	y := func(name string) float64 {
		m := regexp.MustCompile(name + `="([0-9.]+)"`).FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%q has no %s", line, name)
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return math.Abs(y("y2") - y("y1"))
}

func TestAxesSayWhatTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		axis     result.Axis
		low, top float64
		caption  string
		first    string
	}{
		"times are told in the unit that suits them": {result.Axis{Label: "took", Unit: "s"}, 0.00001, 0.0003, "took (µs)", "0"},
		"long ones in minutes":                       {result.Axis{Label: "time", Unit: "s"}, 0, 1200, "time (min)", "0"},
		"sizes in powers of 1024":                    {result.Axis{Label: "heap", Unit: "B"}, 1 << 20, 9 << 20, "heap (MiB)", "0"},
		"rates per second":                           {result.Axis{Label: "calls", Unit: "/s"}, 10, 90, "calls (/s)", "0"},
		"bare numbers have no unit":                  {result.Axis{Label: "agents"}, 1, 4, "agents", "0"},
		"what is below zero is shown with zero":      {result.Axis{Label: "growth", Unit: "B"}, -4096, -1024, "growth (KiB)", "-4"},
		"a logarithm says so":                        {result.Axis{Label: "took", Unit: "s", Log: true}, 0.001, 0.2, "took (ms, logarithmic, not from zero)", "1"},
		"and its units where there are several":      {result.Axis{Label: "took", Unit: "s", Log: true}, 0.0001, 9, "took (µs to s, logarithmic, not from zero)", "100 µs"},
	} {
		t.Run(name, func(t *testing.T) {
			var e extent
			e.add(c.low, c.axis.Log)
			e.add(c.top, c.axis.Log)
			a := vertical(c.axis, e)
			if a.caption != c.caption || a.ticks[0].text != c.first {
				t.Errorf("it is called %q and begins with %q", a.caption, a.ticks[0].text)
			}
			if a.share(c.low) < 0 || a.share(c.top) > 1 || a.share(c.low) >= a.share(c.top) || !c.axis.Log && (a.from > 0 || a.to < 0) {
				t.Errorf("it is %+v", a)
			}
		})
	}
}

func TestAnAxisThatDoesNotStartAtZeroSaysSo(t *testing.T) {
	var e extent
	e.add(99_000, false)
	e.add(100_000, false)
	if a := horizontal(result.Axis{Label: "offered", Unit: "/s"}, e, 1000); a.from != 99_000 || a.caption != "offered (/s, does not start at 0)" {
		t.Errorf("it starts at %v and is called %q", a.from, a.caption)
	}
	e.add(1000, false)
	if a := horizontal(result.Axis{Label: "offered", Unit: "/s"}, e, 1000); a.from != 0 || a.caption != "offered (/s)" {
		t.Errorf("it starts at %v and is called %q", a.from, a.caption)
	}
}

// TestLinesDiffer holds that a dozen lines differ in colour or dash, and
// neighbours in both.
func TestLinesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for i := range 12 {
		look := class("c", i) + dash(i)
		if seen[look] {
			t.Errorf("the line %d looks like another one", i)
		}
		seen[look] = true
		if class("c", i) == class("c", i+1) || dash(i) == dash(i+1) {
			t.Errorf("the lines %d and %d look alike", i, i+1)
		}
	}
}

func TestAGapIsNotBridged(t *testing.T) {
	l := wave("p99", 600, 1)
	d := &drawing{plot: result.Plot{Lines: []result.Line{l}}}
	if parts := d.parts(l); len(parts) != 2 || len(parts[0].X)+len(parts[1].X) != len(l.X) {
		t.Errorf("there are %d parts", len(parts))
	}
	few := result.Line{X: []float64{1, 10, 1000}, Y: []float64{1, 1, 1}}
	if parts := d.parts(few); len(parts) != 1 {
		t.Errorf("of few points there are %d parts", len(parts))
	}
}

// TestThinningLosesNoPeak holds what is left of very many points to their highest and lowest.
func TestThinningLosesNoPeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ys := rapid.SliceOfN(rapid.Float64Range(0, 300), 1121, 3000).Draw(t, "y")
		points := make([]point, len(ys))
		for i, y := range ys {
			points[i] = point{float64(i) * 40 / float64(len(ys)), y}
		}
		kept := thinned(points)
		var left []float64
		for _, p := range kept {
			left = append(left, p.y)
		}
		if slices.Max(left) != slices.Max(ys) || slices.Min(left) != slices.Min(ys) || len(kept) > 4*41 || kept[0] != points[0] || kept[len(kept)-1] != points[len(points)-1] {
			t.Fatalf("of %d points %d are left, from %v to %v", len(ys), len(kept), slices.Min(left), slices.Max(left))
		}
	})
}

// plots are whatever a load test may want to show.
func plots() *rapid.Generator[result.Plot] {
	return rapid.Custom(func(t *rapid.T) result.Plot {
		words := rapid.StringN(0, 60, -1)
		axes := rapid.Custom(func(t *rapid.T) result.Axis {
			return result.Axis{Label: words.Draw(t, "label"), Unit: rapid.SampledFrom([]string{"s", "B", "/s", "", "ratio", "agents"}).Draw(t, "unit"), Log: rapid.Bool().Draw(t, "log")}
		})
		p := result.Plot{Title: words.Draw(t, "title"), X: axes.Draw(t, "x"), Y: axes.Draw(t, "y")}
		size := math.Pow(10, rapid.Float64Range(-9, 12).Draw(t, "size"))
		for i := range rapid.IntRange(0, 12).Draw(t, "lines") {
			l := result.Line{Name: words.Draw(t, fmt.Sprint("line ", i))}
			for range rapid.IntRange(0, 5).Draw(t, "points") {
				l.X, l.Y = append(l.X, size*rapid.Float64Range(-1, 9).Draw(t, "x")), append(l.Y, rapid.Float64().Draw(t, "y"))
			}
			slices.Sort(l.X)
			p.Lines = append(p.Lines, l)
		}
		for range rapid.IntRange(0, 30).Draw(t, "marks") {
			at := size * rapid.Float64Range(0, 9).Draw(t, "mark")
			p.Marks = append(p.Marks, result.Mark{X: at, Until: at * rapid.Float64Range(0, 2).Draw(t, "until"), Label: words.Draw(t, "what")})
		}
		return p
	})
}

func TestNoTextEverTouchesAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		if err := Draw(&b, plots().Draw(t, "plot")); err != nil {
			t.Fatal(err)
		}
		legible(t, b.String())
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Fatalf("a place is not a number:\n%s", b.String())
		}
	})
}
