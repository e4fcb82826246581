package svg

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// text is one text of a picture, with the room it takes at most.
type text struct {
	what, class string
	box         box
}

// parsed are the texts of a picture, its size, and how often each element with
// a class is in it. A picture that is no XML ends the test.
func parsed(t tester, picture string) (texts []text, size point, classes map[string]int) {
	t.Helper()
	classes = map[string]int{}
	d := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, size, classes
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v\n%s", err, picture)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		a := attributes(e)
		classes[e.Name.Local+"."+a["class"]]++
		if v, ok := a["viewBox"]; ok {
			if _, err := fmt.Sscanf(v, "0 0 %f %f", &size.x, &size.y); err != nil {
				t.Fatalf("the view box is %q", v)
			}
		}
		if e.Name.Local != "text" {
			continue
		}
		var what string
		if err := d.DecodeElement(&what, &e); err != nil {
			t.Fatalf("a text: %v", err)
		}
		texts = append(texts, text{what, a["class"], room(what, a)})
	}
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func attributes(e xml.StartElement) map[string]string {
	a := map[string]string{}
	for _, one := range e.Attr {
		a[one.Name.Local] = one.Value
	}
	return a
}

// room is what a text takes in the widest of its fonts.
func room(what string, a map[string]string) box {
	number := func(name string) float64 {
		v, err := strconv.ParseFloat(a[name], 64)
		if err != nil {
			return math.NaN()
		}
		return v
	}
	x, y, size := number("x"), number("y"), number("font-size")
	width := Width(what, size)
	switch a["text-anchor"] {
	case "middle":
		x -= width / 2
	case "end":
		x -= width
	}
	return box{x, y - 0.76*size, x + width, y + 0.24*size}
}

func (b box) touches(other box) bool {
	return b.left < other.right && other.left < b.right && b.top < other.bottom && other.top < b.bottom
}

// legible fails the test if a text touches another one, or leaves the picture.
func legible(t tester, picture string) {
	t.Helper()
	texts, size, _ := parsed(t, picture)
	for i, one := range texts {
		b := one.box
		if !(b.left >= 0 && b.top >= 0 && b.right <= size.x && b.bottom <= size.y) {
			t.Errorf("%q at %+v is not within %+v", one.what, b, size)
		}
		for _, other := range texts[:i] {
			if b.touches(other.box) {
				t.Errorf("%q at %+v touches %q at %+v", one.what, b, other.what, other.box)
			}
		}
	}
}

// pictures are plots that are hard to draw, by what is hard about them.
func pictures() map[string]result.Plot {
	second := result.Axis{Label: "time", Unit: "s"}
	took := result.Axis{Label: "latency, from the intended start", Unit: "s"}
	all := map[string]result.Plot{
		"a latency over time with a few faults": {
			Title: "Latency over time", X: second, Y: took,
			Lines: []result.Line{wave("p50", 600, 0.0004), wave("p99", 600, 0.002), wave("p99.9", 600, 0.009)},
			Marks: []result.Mark{{X: 61, Label: "kill -9 worker-1"}, {X: 180, Until: 210, Label: "the link to broker-2 is cut"}, {X: 400, Label: "kill -9 broker-1"}},
		},
		"many marks with the same few labels": {Title: "Many faults", X: second, Y: took, Lines: []result.Line{wave("p99", 600, 0.002)}, Marks: marks(150, 5)},
		"many marks with a label each":        {Title: "Many different faults", X: second, Y: took, Lines: []result.Line{wave("p99", 600, 0.002)}, Marks: marks(90, 90)},
		"twelve lines with long names":        {Title: "Ratios by the number of hooks", X: result.Axis{Label: "hooks"}, Y: result.Axis{Label: "p50 to the bare request-reply", Unit: "ratio"}, Lines: dozen()},
		"one point":                           {Title: "One point", X: second, Y: took, Lines: []result.Line{{Name: "p50", X: []float64{3}, Y: []float64{0.001}, Low: []float64{0.0005}, High: []float64{0.002}}}},
		"no point":                            {Title: "No point", X: second, Y: took, Lines: []result.Line{{Name: "p50"}}},
		"nothing":                             {},
		"a huge range": {Title: "A huge range", X: result.Axis{Label: "agents", Log: true}, Y: result.Axis{Label: "latency", Unit: "s", Log: true},
			Lines: []result.Line{{Name: "p99", X: []float64{10, 100, 1000, 1e4, 1e6}, Y: []float64{0.0000001, 0.00002, 0.004, 1, 90}}}},
		"a range that is hardly one": {Title: "Hardly a range", X: result.Axis{Label: "offered", Unit: "/s"}, Y: result.Axis{Label: "latency", Unit: "s", Log: true},
			Lines: []result.Line{{Name: "p99", X: []float64{99_000, 99_500, 100_000}, Y: []float64{0.00101, 0.00102, 0.00103}}}},
		"bytes": {Title: "Memory", X: second, Y: result.Axis{Label: "resident memory", Unit: "B"},
			Lines: []result.Line{wave("broker", 36_000, 180<<20), wave("worker", 36_000, 40<<20)}},
		"bytes on a logarithm": {Title: "Memory by agents", X: result.Axis{Label: "agents", Log: true}, Y: result.Axis{Label: "memory of one agent", Unit: "B", Log: true},
			Lines: []result.Line{{Name: "heap", X: []float64{10, 1e4}, Y: []float64{900, 3 << 30}}}},
		"zeros on a logarithm": {Title: "Zeros", X: result.Axis{Label: "pending", Log: true}, Y: took, Lines: []result.Line{{Name: "p50", X: []float64{0, 1, 10}, Y: []float64{1, 1, 1}}}},
		"negative values":      {Title: "Growth", X: second, Y: result.Axis{Label: "growth", Unit: "B"}, Lines: []result.Line{{Name: "heap", X: []float64{0, 1, 2}, Y: []float64{-5e6, 2e6, 9e6}}}},
		"many millions":        {Title: "Fast", X: second, Y: result.Axis{Label: "throughput", Unit: "/s"}, Lines: []result.Line{wave("done", 60, 4.2e7)}},
		"a long title and words in need of escape": {Title: strings.Repeat("a <script>alert(1)</script> & a \"title\" that does not end ", 6), X: second, Y: took,
			Lines: []result.Line{{Name: strings.Repeat("<b>ж漢字 ", 40), X: []float64{1, 2}, Y: []float64{1, 2}}}, Marks: []result.Mark{{X: 1, Label: strings.Repeat("&", 300)}}},
		"intervals": {Title: "Throughput by workers", X: result.Axis{Label: "workers"}, Y: result.Axis{Label: "throughput", Unit: "/s"}, Lines: []result.Line{
			{Name: "measured", X: []float64{1, 2, 4}, Y: []float64{900, 1750, 3300}, Low: []float64{850, 1600, 2900}, High: []float64{930, 1800, 3600}},
			{Name: "ideal", X: []float64{1, 2, 4}, Y: []float64{1000, 2000, 4000}},
		}},
	}
	return all
}

// wave is a line of many points with a gap in it.
func wave(name string, until, height float64) result.Line {
	l := result.Line{Name: name}
	for i := range 1200 {
		x := until * float64(i) / 1200
		if i > 700 && i < 760 {
			continue
		}
		y := height * (1 + 0.3*math.Sin(float64(i)/9) + 0.2*math.Cos(float64(i*i)))
		l.X, l.Y = append(l.X, x), append(l.Y, y)
		l.Low, l.High = append(l.Low, 0.9*y), append(l.High, 1.2*y)
	}
	return l
}

func marks(n, kinds int) []result.Mark {
	var all []result.Mark
	for i := range n {
		all = append(all, result.Mark{X: float64(i*i%601) + 0.5, Until: float64(i%7) * float64(i*i%601) / 5, Label: fmt.Sprintf("kill -9 worker-%d", i%kinds)})
	}
	return all
}

func dozen() []result.Line {
	var all []result.Line
	for i := range 12 {
		l := result.Line{Name: fmt.Sprintf("%d hooks of a remote pool that is called by a long name, number %d", i, i)}
		for _, x := range []float64{1, 2, 4, 8, 16} {
			l.X, l.Y = append(l.X, x), append(l.Y, 0.5+float64(i)*0.1*math.Sqrt(x))
		}
		all = append(all, l)
	}
	return all
}

// drawnPlot is the picture of a plot as a file.
func drawnPlot(t *testing.T, p result.Plot) string {
	t.Helper()
	var b strings.Builder
	if err := Draw(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNoTextTouchesAnother draws all that is hard to draw. To look at it:
// PICTURES=/tmp/pictures go test ./loadtest/report/svg
func TestNoTextTouchesAnother(t *testing.T) {
	dir := os.Getenv("PICTURES")
	for name, p := range pictures() {
		t.Run(name, func(t *testing.T) {
			picture := drawnPlot(t, p)
			legible(t, picture)
			if dir == "" {
				return
			}
			if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".svg"), []byte(picture), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}
