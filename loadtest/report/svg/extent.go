package svg

import "github.com/hookfabric/hookfabric/loadtest/result"

// extents are what the axes have to show: all points, their intervals, and all
// marks.
func (d *drawing) extents() (x, y extent) {
	for _, l := range d.plot.Lines {
		for i := range l.X {
			if !d.has(l.X[i], l.Y[i]) {
				d.missed++
				continue
			}
			x.add(l.X[i], d.plot.X.Log)
			y.add(l.Y[i], d.plot.Y.Log)
			if len(l.Low) > 0 {
				y.add(l.Low[i], d.plot.Y.Log)
				y.add(l.High[i], d.plot.Y.Log)
			}
		}
	}
	for _, m := range d.plot.Marks {
		x.add(m.X, d.plot.X.Log)
		if m.Until > 0 {
			x.add(m.Until, d.plot.X.Log)
		}
	}
	return x, y
}

// has reports whether a point has a place in the picture.
func (d *drawing) has(x, y float64) bool {
	return drawable(x, d.plot.X.Log) && drawable(y, d.plot.Y.Log)
}

// vertical is the axis beside the data.
func vertical(of result.Axis, e extent) axis {
	const ticks = 8
	if of.Log {
		return logarithmic(of, e, ticks)
	}
	return linear(of, e, ticks-2, false)
}

// horizontal is the axis below the data, with as many ticks as have room beside
// each other.
func horizontal(of result.Axis, e extent, width float64) axis {
	const most, least = 14, 2
	for ticks := most; ; ticks-- {
		var a axis
		if of.Log {
			a = logarithmic(of, e, ticks)
		} else {
			a = linear(of, e, ticks, true)
		}
		if ticks == least || a.roomy(width) {
			return a
		}
	}
}

// roomy reports whether no tick's text comes near its neighbour's.
func (a axis) roomy(width float64) bool {
	for i, t := range a.ticks {
		if i == 0 {
			continue
		}
		before := a.ticks[i-1]
		apart := (a.share(t.at) - a.share(before.at)) * width
		if apart < (Width(t.text, plain().size)+Width(before.text, plain().size))/2+margin {
			return false
		}
	}
	return true
}
