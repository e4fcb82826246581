package report

import (
	"math"
	"strconv"
	"strings"
)

// A Scale is the unit in which one axis or one column shows its numbers.
type Scale struct {
	// Name is the unit in print, such as "ms"; empty: numbers without a unit.
	Name string
	// Per is the size of one such unit, in the figure's own unit.
	Per float64
}

// For returns the scale in which most, in unit, is easy to read.
func For(unit string, most float64) Scale {
	most = math.Abs(most)
	chosen := Scale{unit, 1}
	for _, s := range scales(unit) {
		if most < s.from {
			break
		}
		chosen = s.Scale
	}
	return chosen
}

// step is a scale and the smallest number that it shows.
type step struct {
	Scale
	from float64
}

func scales(unit string) []step {
	switch unit {
	case "s":
		return []step{
			{Scale{"ns", 1e-9}, 0}, {Scale{"µs", 1e-6}, 1e-6}, {Scale{"ms", 1e-3}, 1e-3}, {Scale{"s", 1}, 1},
			{Scale{"min", 60}, 600}, {Scale{"h", 3600}, 4 * 3600},
		}
	case "B":
		return []step{
			{Scale{"B", 1}, 0}, {Scale{"KiB", 1 << 10}, 1 << 10}, {Scale{"MiB", 1 << 20}, 1 << 20}, {Scale{"GiB", 1 << 30}, 1 << 30},
			{Scale{"TiB", 1 << 40}, 1 << 40},
		}
	case "ratio":
		return []step{{Scale{"×", 1}, 0}}
	default:
		return []step{{Scale{unit, 1}, 0}, {Scale{joined("million", unit), 1e6}, 1e7}, {Scale{joined("billion", unit), 1e9}, 1e10}}
	}
}

// joined returns a unit with a word before it: "million/s", "million calls".
func joined(word, unit string) string {
	if unit == "" || strings.HasPrefix(unit, "/") {
		return word + unit
	}
	return word + " " + unit
}

// Value returns v with its unit, in a suitable scale: "12.3 ms".
func Value(v float64, unit string) string {
	if v == 0 && unit == "s" {
		return "0 s"
	}
	return For(unit, v).Value(v)
}

// Value returns v with the scale's unit, in three digits or all of those before the point.
func (s Scale) Value(v float64) string {
	if s.Name == "" || strings.HasPrefix(s.Name, "/") {
		return s.Number(v) + s.Name
	}
	return s.Number(v) + " " + s.Name
}

// Number returns v in the scale, without the unit.
func (s Scale) Number(v float64) string {
	v /= s.Per
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v+0, 'g', -1, 64)
	}
	if magnitude := math.Abs(v); magnitude < 1e-3 || magnitude >= 1e9 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return Thousands(trimmed(strconv.FormatFloat(v, 'f', digits, 64), digits))
}

// trimmed drops the point of whole numbers: "3.00" is 3.
func trimmed(s string, digits int) string {
	if digits == 0 {
		return s
	}
	if whole, fraction, _ := strings.Cut(s, "."); strings.Trim(fraction, "0") == "" {
		return whole
	}
	return s
}

// Thousands sets the thousands of a decimal number apart: "12,345.6".
func Thousands(number string) string {
	sign := ""
	if strings.HasPrefix(number, "-") {
		sign, number = "-", number[1:]
	}
	whole, fraction, _ := strings.Cut(number, ".")
	var b strings.Builder
	b.WriteString(sign)
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return b.String()
}
