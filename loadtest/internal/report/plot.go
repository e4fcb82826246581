package report

import (
	"cmp"
	"fmt"
	"html"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of a picture.
const (
	width  = 840 * vg.Length(1)
	height = 300 * vg.Length(1)
	row    = 11 * vg.Length(1) // of the legend
)

// largest is the largest value that is drawn. Its inverse is the smallest one of a
// logarithmic axis.
const largest = 1e150

// svg draws a plot. The namespace is that of a file; empty: the picture is a part of a page.
// The legend is above the data.
func svg(p Plot, namespace string) (string, error) {
	chart, legend, rows := plot.New(), plot.NewLegend(), 0
	legend.Top, legend.Left = true, true
	chart.Title.Text, chart.X.Label.Text, chart.Y.Label.Text = p.Title, axisLabel(p.X), axisLabel(p.Y)
	scale(&chart.X, p.X, func(add func(float64)) {
		for _, m := range p.Marks {
			add(m.X)
			add(m.Until)
		}
		for _, l := range p.Lines {
			each(l.X, add)
		}
	})
	scale(&chart.Y, p.Y, func(add func(float64)) {
		for _, l := range p.Lines {
			for _, values := range [][]float64{l.Y, l.Low, l.High} {
				each(values, add)
			}
		}
	})
	entry := func(name string, thumb plot.Thumbnailer) {
		legend.Add(name, thumb)
		rows++
	}
	if err := marks(chart, p, entry); err != nil {
		return "", err
	}
	for i, l := range p.Lines {
		if err := line(chart, p, i, l, entry); err != nil {
			return "", err
		}
	}
	if rows == 0 {
		legend.Add("nothing was measured")
		rows++
	}
	canvas := vgsvg.New(width, height+vg.Length(rows)*row)
	all := draw.New(canvas)
	chart.Draw(draw.Crop(all, 0, 0, 0, -vg.Length(rows)*row))
	legend.Draw(draw.Crop(all, row, 0, height, 0))
	var b strings.Builder
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("drawing the plot %q: %w", p.Title, err)
	}
	_, body, _ := strings.Cut(b.String(), "<svg")
	_, body, _ = strings.Cut(body, ">")
	return fmt.Sprintf(`<svg%s viewBox="0 0 %.0f %.0f" role="img"><title>%s</title>%s`, namespace, width, height+vg.Length(rows)*row, html.EscapeString(p.Title), body), nil
}

func axisLabel(a Axis) string {
	if a.Log {
		return a.Label + " (logarithmic)"
	}
	return a.Label
}

func each(values []float64, do func(float64)) {
	for _, v := range values {
		do(v)
	}
}

// drawable reports whether a value has a place on an axis.
func drawable(a Axis, v float64) bool {
	return math.Abs(v) <= largest && (!a.Log || v > 1/largest)
}

// scale sets the range of an axis and its ticks with units. A linear axis contains 0.
func scale(axis *plot.Axis, a Axis, all func(add func(float64))) {
	low, high := math.Inf(1), math.Inf(-1)
	if !a.Log {
		low, high = 0, 0
	}
	all(func(v float64) {
		if drawable(a, v) {
			low, high = min(low, v), max(high, v)
		}
	})
	var ticks plot.Ticker = plot.DefaultTicks{}
	if a.Log {
		if low > high {
			low, high = 1, 1
		}
		from := math.Floor(math.Log10(low) + 1e-9)
		low, high = math.Pow(10, from), math.Pow(10, max(math.Ceil(math.Log10(high)-1e-9), from+1))
		axis.Scale, ticks = plot.LogScale{}, plot.LogTicks{Prec: -1}
	} else if low == high {
		high = 1
	}
	axis.Min, axis.Max = low, high
	axis.AutoRescale = false
	axis.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		marked := ticks.Ticks(low, high)
		for i := range marked {
			if marked[i].Label != "" {
				marked[i].Label = Value(marked[i].Value, a.Unit)
			}
		}
		return marked
	})
}

// marks draws the actions on the fabric: a vertical line for each moment, a band for each
// duration, in one colour for each kind.
func marks(chart *plot.Plot, p Plot, entry func(string, plot.Thumbnailer)) error {
	kinds, of := named(p.Marks, func(m Mark) string { return cmp.Or(m.Group, m.Label) })
	if len(kinds) > len(plotutil.SoftColors) { // the first word: "kill", "stop"
		kinds, of = named(p.Marks, func(m Mark) string {
			word, _, _ := strings.Cut(cmp.Or(m.Group, m.Label), " ")
			return word
		})
	}
	for i, kind := range kinds {
		colour := plotutil.SoftColors[(len(plotutil.SoftColors) - 1 - i%len(plotutil.SoftColors))]
		var thumb plot.Thumbnailer
		for _, m := range of[kind] {
			if !drawable(p.X, m.X) {
				continue
			}
			until := max(m.X, m.Until)
			band, err := plotter.NewPolygon(plotter.XYs{{X: m.X, Y: chart.Y.Min}, {X: m.X, Y: chart.Y.Max}, {X: until, Y: chart.Y.Max}, {X: until, Y: chart.Y.Min}})
			if err != nil {
				return fmt.Errorf("drawing the mark %q: %w", m.Label, err)
			}
			band.Color, band.LineStyle = faint(colour), draw.LineStyle{Color: colour, Width: vg.Points(0.7)}
			chart.Add(band)
			thumb = band
		}
		if thumb != nil {
			entry(fmt.Sprintf("%s (%d times)", kind, len(of[kind])), thumb)
		}
	}
	return nil
}

// named returns the names of marks in their order, and the marks of each name.
func named(marks []Mark, name func(Mark) string) (names []string, of map[string][]Mark) {
	of = map[string][]Mark{}
	for _, m := range marks {
		if of[name(m)] == nil {
			names = append(names, name(m))
		}
		of[name(m)] = append(of[name(m)], m)
	}
	return names, of
}

func faint(c color.Color) color.Color {
	r, g, b, _ := c.RGBA()
	const eight = 8
	return color.NRGBA{R: uint8(r >> eight), G: uint8(g >> eight), B: uint8(b >> eight), A: 40}
}

// line draws a line, its points if they are few, and its intervals.
func line(chart *plot.Plot, p Plot, i int, l Line, entry func(string, plot.Thumbnailer)) error {
	const few = 40
	var thumb plot.Thumbnailer
	for _, part := range parts(p, l) {
		if len(part.Low) > 0 {
			band := points(part.X, part.High)
			under := points(part.X, part.Low)
			slices.Reverse(under)
			area, err := plotter.NewPolygon(append(band, under...))
			if err != nil {
				return fmt.Errorf("drawing the line %q: %w", l.Name, err)
			}
			area.Color, area.LineStyle.Width = faint(plotutil.Color(i)), 0
			chart.Add(area)
		}
		drawn, dots, err := plotter.NewLinePoints(points(part.X, part.Y))
		if err != nil {
			return fmt.Errorf("drawing the line %q: %w", l.Name, err)
		}
		drawn.LineStyle = draw.LineStyle{Color: plotutil.Color(i), Width: vg.Points(1.5), Dashes: plotutil.Dashes(i)}
		dots.GlyphStyle = draw.GlyphStyle{Color: plotutil.Color(i), Radius: vg.Points(2.5), Shape: draw.CircleGlyph{}}
		if chart.Add(drawn); len(l.X) <= few || len(part.X) == 1 {
			chart.Add(dots)
		}
		thumb = drawn
	}
	if thumb != nil {
		entry(l.Name, thumb)
	}
	return nil
}

func points(xs, ys []float64) plotter.XYs {
	all := make(plotter.XYs, len(xs))
	for i := range xs {
		all[i] = plotter.XY{X: xs[i], Y: ys[i]}
	}
	return all
}

// parts returns the stretches of a line without a gap. A line with many points has a gap
// where two points are five times as far apart as usual.
func parts(p Plot, l Line) []Line {
	const many, times = 20, 5
	longest := math.Inf(1)
	if len(l.X) >= many {
		var apart []float64
		for i := range l.X[1:] {
			apart = append(apart, l.X[i+1]-l.X[i])
		}
		slices.Sort(apart)
		longest = times * apart[len(apart)/2]
	}
	var all []Line
	last := math.NaN()
	for i, x := range l.X {
		if !drawable(p.X, x) || !drawable(p.Y, l.Y[i]) || len(l.Low) > 0 && !(drawable(p.Y, l.Low[i]) && drawable(p.Y, l.High[i])) {
			continue
		}
		if len(all) == 0 || x-last > longest {
			all = append(all, Line{})
		}
		part := &all[len(all)-1]
		part.X, part.Y, last = append(part.X, x), append(part.Y, l.Y[i]), x
		if len(l.Low) > 0 {
			part.Low, part.High = append(part.Low, l.Low[i]), append(part.High, l.High[i])
		}
	}
	return all
}
