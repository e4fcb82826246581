package svg

import "fmt"

// Colours and dashes are told apart with both together: as many lines as their
// numbers' product differ in one or the other, neighbours in both.
const (
	colours = 7
	sample  = 34.0 // the length of a line in the legend
	gap     = 6.0
)

// dash is the pattern of the i-th line.
func dash(i int) string {
	patterns := [...]string{"", "7 4", "2 3", "10 3 2 3", "14 5"}
	return patterns[i%len(patterns)]
}

// class is the i-th line's, of a kind: c its colour, a its area, d its dots.
func class(kind string, i int) string { return fmt.Sprintf("%s%d", kind, i%colours) }

// legend names the lines above the data.
func (d *drawing) legend() {
	f := flow{left: margin, right: across - margin, x: margin, y: d.bottom + row}
	for i, l := range d.plot.Lines {
		name := fitted(l.Name, label().size, f.right-f.left-sample-gap)
		at := f.place(sample + gap + Width(name, label().size))
		d.pen.path(class("c", i), dash(i), []point{{at.x, at.y - 4}, {at.x + sample, at.y - 4}}, false)
		if few(l) {
			d.pen.dot(class("d", i), point{at.x + sample/2, at.y - 4}, l.Name)
		}
		d.pen.text(point{at.x + sample + gap, at.y}, start, label(), name)
	}
	if len(d.plot.Lines) > 0 {
		d.bottom = f.y
	}
	d.bottom += row / 2
}
