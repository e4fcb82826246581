package svg

import (
	"math"
	"slices"

	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// few reports whether a line has so few points that each is drawn.
func few(l result.Line) bool { return len(l.X) <= 40 }

// lines draws the data, all intervals below all lines.
func (d *drawing) lines() {
	for i, l := range d.plot.Lines {
		for _, part := range d.parts(l) {
			d.band(i, part)
		}
	}
	drawn := false
	for i, l := range d.plot.Lines {
		for _, part := range d.parts(l) {
			drawn = true
			d.line(i, part)
		}
	}
	if !drawn {
		at := point{(d.area.left + d.area.right) / 2, (d.area.top + d.area.bottom) / 2}
		d.pen.text(at, middle, label(), "nothing was measured")
	}
}

// band is the area of the intervals around the points.
func (d *drawing) band(i int, l result.Line) {
	if len(l.Low) == 0 {
		return
	}
	var over, under []point
	for k, x := range l.X {
		over = append(over, d.at(x, l.High[k]))
		under = append(under, d.at(x, l.Low[k]))
	}
	if len(l.X) == 1 { // an area needs a width
		const half = 3
		over = []point{{over[0].x - half, over[0].y}, {over[0].x + half, over[0].y}}
		under = []point{{over[0].x, under[0].y}, {over[1].x, under[0].y}}
	}
	slices.Reverse(under)
	d.pen.path(class("a", i), "", append(over, under...), true)
}

// line is the line through the points, and the points if there are few.
func (d *drawing) line(i int, l result.Line) {
	points := make([]point, len(l.X))
	for k := range l.X {
		points[k] = d.at(l.X[k], l.Y[k])
	}
	if len(points) > 1 {
		d.pen.path(class("c", i), dash(i), thinned(points), false)
	}
	if !few(l) && len(points) > 1 {
		return
	}
	for k, at := range points {
		d.pen.dot(class("d", i), at, l.Name+": "+units.Value(l.X[k], d.plot.X.Unit)+", "+units.Value(l.Y[k], d.plot.Y.Unit))
	}
}

// parts are the stretches of a line in which something was measured all the
// time. A line with many points has gaps where points are missing that the
// others' distance makes expected.
func (d *drawing) parts(l result.Line) []result.Line {
	var all []result.Line
	longest := pause(l.X)
	last := math.NaN()
	for i, x := range l.X {
		if !d.has(x, l.Y[i]) {
			continue
		}
		if len(all) == 0 || x-last > longest {
			all = append(all, result.Line{Name: l.Name})
		}
		part := &all[len(all)-1]
		part.X, part.Y = append(part.X, x), append(part.Y, l.Y[i])
		if len(l.Low) > 0 {
			part.Low, part.High = append(part.Low, l.Low[i]), append(part.High, l.High[i])
		}
		last = x
	}
	return all
}

// pause is the distance between two points from which on something is missing.
func pause(xs []float64) float64 {
	const enough, times = 20, 5
	if len(xs) < enough {
		return math.Inf(1)
	}
	apart := make([]float64, len(xs)-1)
	for i := range apart {
		apart[i] = xs[i+1] - xs[i]
	}
	slices.Sort(apart)
	return times * apart[len(apart)/2]
}

// thinned keeps of all points above one pixel the first, the highest, the lowest
// and the last: more cannot be seen.
func thinned(points []point) []point {
	if len(points) <= across {
		return points
	}
	var kept []point
	for len(points) > 0 {
		n := 1
		for n < len(points) && math.Floor(points[n].x) == math.Floor(points[0].x) {
			n++
		}
		kept = append(kept, extremes(points[:n])...)
		points = points[n:]
	}
	return kept
}

// extremes are the first, the lowest, the highest and the last of points, in their order.
func extremes(points []point) []point {
	if len(points) <= 4 {
		return points
	}
	keep := []int{0, 0, 0, len(points) - 1}
	for i, p := range points {
		if p.y < points[keep[1]].y {
			keep[1] = i
		}
		if p.y > points[keep[2]].y {
			keep[2] = i
		}
	}
	slices.Sort(keep)
	var kept []point
	for _, i := range slices.Compact(keep) {
		kept = append(kept, points[i])
	}
	return kept
}
