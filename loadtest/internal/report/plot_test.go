package report

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestAPlotShowsWhatItIsAbout(t *testing.T) {
	p := Plot{
		Title: "Latency & <more>", X: Axis{Label: "time", Unit: "s"}, Y: Axis{Label: "p99", Unit: "s", Log: true},
		Lines: []Line{
			{Name: "calls <1>", X: []float64{1, 2, 3}, Y: []float64{0.001, 0, 0.01}, Low: []float64{0.0005, 0, 0.005}, High: []float64{0.002, 0, 0.02}},
			{Name: "other", X: []float64{1}, Y: []float64{math.Inf(1)}},
		},
		Marks: []Mark{{X: 1, Label: "kill worker-1", Group: "kill of a worker"}, {X: 2, Until: 3, Label: "kill worker-2", Group: "kill of a worker"}},
	}
	got, err := svg(p, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Latency &amp; &lt;more&gt;", ">time<", ">p99 (logarithmic)<", "calls &lt;1&gt;", "kill of a worker (2 times)", ">1 ms<", ">10 ms<", ">2 s<"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, ">other<") {
		t.Error("the legend names a line without a point")
	}
}

func TestAPlotOfNothingSaysSo(t *testing.T) {
	for name, p := range map[string]Plot{
		"no line": {Title: "nothing"},
		"no point on a logarithmic axis": {X: Axis{Log: true}, Y: Axis{Log: true},
			Lines: []Line{{Name: "zero", X: []float64{0}, Y: []float64{0}}}},
	} {
		if got, err := svg(p, ""); err != nil || !strings.Contains(got, "nothing was measured") {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

// TestAnyValueCanBeDrawn draws one point of extreme values on both kinds of axes.
func TestAnyValueCanBeDrawn(t *testing.T) {
	for _, v := range []float64{1, -1, 1e-12, 1e12, 1e149, 1e-149, math.MaxFloat64} {
		for _, log := range []bool{false, true} {
			p := Plot{X: Axis{Log: log}, Y: Axis{Log: log}, Lines: []Line{{Name: "one", X: []float64{v}, Y: []float64{v}}}}
			if got, err := svg(p, ""); err != nil || strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
				t.Errorf("%v: %v", v, err)
			}
		}
	}
}

func TestALineHasAGapWhereNothingWasMeasured(t *testing.T) {
	l := Line{}
	for i := range 60 {
		if i < 30 || i > 40 {
			l.X, l.Y = append(l.X, float64(i)), append(l.Y, 1)
		}
	}
	got := ""
	for _, part := range parts(Plot{}, l) {
		got += fmt.Sprintf("[%v %v]", part.X[0], part.X[len(part.X)-1])
	}
	if got != "[0 29][41 59]" {
		t.Errorf("the parts are %s", got)
	}
}
