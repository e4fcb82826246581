// Package sketch draws a plot with letters for a terminal: each line is the edge of an area,
// the first one in front. It shows the shape of a run; the tables have the figures.
package sketch

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// Size is how many letters wide and high the areas are. There is more around them.
type Size struct{ Width, Height int }

// shades are what the areas are filled with, the first line's first. There are
// no more lines than that.
func shades() []string { return []string{"█", "▒", "░"} }

// nothing is where no area is.
const nothing = " "

// Areas draws the first three lines of a plot. A column stands for a stretch of the
// horizontal axis, and shows the highest of what was there. A plot without points
// is an empty string.
func Areas(p result.Plot, s Size) string {
	lines := p.Lines[:min(len(p.Lines), len(shades()))]
	f, ok := framed(lines, p.Y.Log)
	if !ok {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", p.Title, legend(lines))
	columns := make([][]float64, len(lines))
	for i, l := range lines {
		columns[i] = f.columns(l, s.Width)
	}
	labels := f.labels(p.Y.Unit, s.Height)
	wide := utf8.RuneCountInString(f.foot(p.Y.Unit))
	for _, l := range labels {
		wide = max(wide, utf8.RuneCountInString(l))
	}
	for row := range s.Height {
		level := s.Height - row // counted from the axis
		fmt.Fprintf(&b, "%*s │%s\n", wide, labels[row], f.row(columns, level, s))
	}
	fmt.Fprintf(&b, "%*s └%s\n", wide, f.foot(p.Y.Unit), strings.Repeat("─", s.Width))
	b.WriteString(f.under(p, s, wide))
	return b.String()
}

// legend says what the shades are.
func legend(lines []result.Line) string {
	var all []string
	for i, l := range lines {
		all = append(all, shades()[i]+" "+l.Name)
	}
	return ": " + strings.Join(all, "  ")
}

// frame is what the axes span.
type frame struct {
	left, right, bottom, top float64
	log                      bool
}

// framed is the frame of all lines. Both axes start at zero, but for a
// logarithmic one, which starts at a power of ten.
func framed(lines []result.Line, log bool) (frame, bool) {
	least, most, right := math.Inf(1), math.Inf(-1), 0.0
	for _, l := range lines {
		for i, y := range l.Y {
			if log && y <= 0 {
				continue
			}
			least, most, right = min(least, y), max(most, y), max(right, l.X[i])
		}
	}
	f := frame{right: right, top: most, log: log}
	if log {
		f.bottom = math.Pow(10, math.Floor(math.Log10(least)))
	}
	return f, most > f.bottom && right > 0
}

// height is how high a value is, of 1.
func (f frame) height(y float64) float64 {
	if f.log {
		return math.Log(y/f.bottom) / math.Log(f.top/f.bottom)
	}
	return y / f.top
}

// value is what is so high.
func (f frame) value(height float64) float64 {
	if f.log {
		return f.bottom * math.Pow(f.top/f.bottom, height)
	}
	return f.top * height
}

// columns are the heights of a line; below 0: there is none.
func (f frame) columns(l result.Line, width int) []float64 {
	all := slices.Repeat([]float64{-1}, width)
	for i, x := range l.X {
		if f.log && l.Y[i] <= 0 {
			continue
		}
		at := f.at(x, width)
		all[at] = max(all[at], f.height(l.Y[i]))
	}
	f.widen(all, l)
	return all
}

// widen gives columns without a point the height of the nearest one that is no
// farther off than points are apart: there may be more columns than points. Where
// points are missing, nothing is drawn.
func (f frame) widen(all []float64, l result.Line) {
	if len(l.X) < 2 {
		return
	}
	width := len(all)
	apart := (l.X[len(l.X)-1] - l.X[0]) / float64(len(l.X)-1)
	for i := range all {
		if all[i] >= 0 {
			continue
		}
		middle := f.left + (float64(i)+0.5)/float64(width)*(f.right-f.left)
		near, _ := slices.BinarySearch(l.X, middle)
		for _, j := range []int{near - 1, near} {
			if j >= 0 && j < len(l.X) && math.Abs(l.X[j]-middle) <= apart/2 && (!f.log || l.Y[j] > 0) {
				all[i] = f.height(l.Y[j])
			}
		}
	}
}

func (f frame) at(x float64, width int) int {
	return min(max(int((x-f.left)/(f.right-f.left)*float64(width)), 0), width-1)
}

// row is one row of letters.
func (f frame) row(columns [][]float64, level int, s Size) string {
	var b strings.Builder
	for x := range s.Width {
		letter := nothing
		for i := range columns {
			if columns[i][x]*float64(s.Height) >= float64(level)-0.5 { // at least half of it
				letter = shades()[i]
				break
			}
		}
		b.WriteString(letter)
	}
	return b.String()
}

// labels are those of the rows' upper edges: of the first, the middle one, and no more.
func (f frame) labels(unit string, height int) []string {
	all := make([]string, height)
	all[0] = units.Value(f.top, unit)
	if half := height / 2; half > 0 {
		all[half] = units.Value(f.value(float64(height-half)/float64(height)), unit)
	}
	return all
}

// foot is the label of the axis.
func (f frame) foot(unit string) string {
	if f.log {
		return units.Value(f.bottom, unit) + " log"
	}
	return "0"
}

// under is what stands under the axis: the marks, and what the axis is.
func (f frame) under(p result.Plot, s Size, wide int) string {
	indent := strings.Repeat(" ", wide+2)
	var b strings.Builder
	if len(p.Marks) > 0 {
		marks := slices.Repeat([]string{nothing}, s.Width)
		for _, m := range p.Marks {
			marks[f.at(m.X, s.Width)] = "▲"
		}
		fmt.Fprintf(&b, "%s%s ▲ fault\n", indent, strings.Join(marks, ""))
	}
	end := units.Value(f.right, p.X.Unit)
	gap := max(s.Width-1-utf8.RuneCountInString(end)-utf8.RuneCountInString(p.X.Label), 2)
	fmt.Fprintf(&b, "%s0%s%s%s%s\n", indent, strings.Repeat(" ", gap/2), p.X.Label, strings.Repeat(" ", gap-gap/2), end)
	return b.String()
}
