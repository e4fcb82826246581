package svg

import (
	"math"
	"slices"

	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// An axis maps values to shares of its length, and says so with ticks.
type axis struct {
	from, to float64
	log      bool
	ticks    []tick
	// caption is the label with the unit, and with what is unusual about the axis.
	caption string
}

type tick struct {
	at   float64
	text string
}

// share is where a value lies: 0 is the axis's beginning, 1 its end. Values
// beyond them are at the ends.
func (a axis) share(v float64) float64 {
	if a.log {
		if v <= 0 {
			return 0
		}
		return clamped((math.Log(v) - math.Log(a.from)) / (math.Log(a.to) - math.Log(a.from)))
	}
	return clamped((v - a.from) / (a.to - a.from))
}

func clamped(share float64) float64 { return min(max(share, 0), 1) }

// extent is what an axis has to show.
type extent struct {
	low, high float64
	whole     bool // nothing but whole numbers
	any       bool
}

// largest is the largest value that is drawn: beyond it the powers of a logarithmic
// axis overflow. Its inverse is the smallest one there.
const largest = 1e150

// drawable reports whether v has a place on an axis at all.
func drawable(v float64, log bool) bool {
	return math.Abs(v) <= largest && (!log || v > 1/largest)
}

// add widens the extent to v, if v is drawable.
func (e *extent) add(v float64, log bool) {
	if !drawable(v, log) {
		return
	}
	if !e.any {
		*e = extent{v, v, true, true}
	}
	e.low, e.high = min(e.low, v), max(e.high, v)
	e.whole = e.whole && v == math.Trunc(v)
}

// linear is an axis with about n ticks. It shows zero, unless it is free not to
// and all it has to show is far from there.
func linear(of result.Axis, e extent, n int, free bool) axis {
	away := free && e.low > 0.6*e.high && e.high > e.low
	low, high := min(e.low, 0), max(e.high, 0)
	if away {
		low = e.low
	}
	s := units.For(of.Unit, max(math.Abs(low), math.Abs(high)))
	if high-low < 1/largest {
		low, high, s = 0, 1, units.For(of.Unit, 1)
	}
	step := nice((high-low)/float64(n)/s.Per) * s.Per
	if e.whole && of.Unit == "" {
		step = max(step, 1)
	}
	a := axis{from: math.Floor(low/step+1e-9) * step, to: math.Ceil(high/step-1e-9) * step}
	digits := int(max(0, -math.Floor(math.Log10(step/s.Per)+1e-9)))
	for i := range int(math.Round((a.to-a.from)/step)) + 1 {
		v := a.from + float64(i)*step
		text := s.Fixed(v, digits)
		if digits > 6 || math.Abs(v/s.Per) > 1e9 || Width(text, plain().size) > 2*edge {
			text = s.Number(v)
		}
		a.ticks = append(a.ticks, tick{v, text})
	}
	notes := []string{s.Name}
	if away {
		notes = append(notes, "does not start at 0")
	}
	a.caption = captioned(of.Label, notes...)
	return a
}

// nice is the least of 1, 2 and 5 times a power of ten that is not below v.
func nice(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logarithmic is an axis with at most about n ticks.
func logarithmic(of result.Axis, e extent, n int) axis {
	if !e.any {
		e.low, e.high = 1, 10
	}
	a := axis{log: true}
	for _, ladder := range ladders(of.Unit) {
		a.from, a.to = ladder.below(e.low), ladder.above(e.high)
		if a.from == a.to {
			a.to = ladder.above(a.to * 1.001)
		}
		at := ladder.between(a.from, a.to)
		if len(at) <= n {
			a.name(of, at)
			return a
		}
	}
	a.name(of, []float64{a.from, a.to})
	return a
}

// name writes the ticks: all in one unit, or each in its own where the axis
// spans several.
func (a *axis) name(of result.Axis, at []float64) {
	first, last := logScale(of.Unit, a.from), logScale(of.Unit, a.to)
	unit := last.Name
	if first != last && first.Name != "" {
		unit = first.Name + " to " + last.Name
	}
	for _, v := range at {
		own := logScale(of.Unit, v)
		text := own.Number(v)
		if first != last {
			text = own.Value(v)
		}
		a.ticks = append(a.ticks, tick{v, text})
	}
	a.caption = captioned(of.Label, unit, "logarithmic, not from zero")
}

// logScale is the scale of one value on a logarithmic axis, where powers of ten
// are round and minutes are not.
func logScale(unit string, v float64) units.Scale {
	if unit == "s" {
		v = min(v, 1)
	}
	return units.For(unit, v*(1+1e-9))
}

// captioned is a label with what is to be said of its axis.
func captioned(text string, notes ...string) string {
	notes = slices.DeleteFunc(notes, func(s string) bool { return s == "" })
	for i, note := range notes {
		if i == 0 {
			text += " ("
		} else {
			text += ", "
		}
		text += note
	}
	if len(notes) > 0 {
		text += ")"
	}
	return text
}
