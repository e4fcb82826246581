package svg

import "math"

// A ladder is the values that a logarithmic axis may have ticks at: some
// multiples of every power of a base.
type ladder struct {
	base      float64
	multiples []float64
}

// ladders are those for a unit, the densest first.
func ladders(unit string) []ladder {
	if unit == "B" {
		return []ladder{{2, one()}, {4, one()}, {16, one()}, {1 << 10, one()}, {1 << 20, one()}, {1 << 40, one()}, {1 << 60, one()}}
	}
	return []ladder{
		{10, []float64{1, 2, 5}}, {10, one()}, {100, one()}, {1e3, one()}, {1e6, one()}, {1e12, one()}, {1e24, one()}, {1e50, one()}, {1e100, one()},
	}
}

func one() []float64 { return []float64{1} }

// nearly makes up for what logarithms round away.
const nearly = 1e-9

// below is the highest rung that is not above v, above the lowest that is not below.
func (l ladder) below(v float64) float64 {
	power := math.Pow(l.base, math.Floor(math.Log(v)/math.Log(l.base)+nearly))
	found := power
	for _, m := range l.multiples {
		if m*power <= v*(1+nearly) {
			found = m * power
		}
	}
	return found
}

func (l ladder) above(v float64) float64 {
	power := math.Pow(l.base, math.Floor(math.Log(v)/math.Log(l.base)+nearly))
	for _, m := range l.multiples {
		if m*power >= v*(1-nearly) {
			return m * power
		}
	}
	return l.base * power
}

// between are the rungs from one to another.
func (l ladder) between(from, to float64) []float64 {
	var all []float64
	for v := from; v <= to*(1+nearly); v = l.above(v * (1 + 10*nearly)) {
		all = append(all, v)
	}
	return all
}
