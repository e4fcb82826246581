package svg

import (
	"fmt"
	"io"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// Sizes of a picture, in pixels of a page that is 1200 wide.
const (
	across = 1120.0
	high   = 300.0 // the data
	margin = 12.0
	edge   = 48.0 // room for half of a tick's text beside the data
	row    = 20.0
)

// Draw writes the plot as a file of its own.
func Draw(w io.Writer, p result.Plot) error {
	d := drawn(p)
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" %[3]s<style>%[4]s</style>`+"\n%[5]s</svg>\n",
		n(across), n(d.bottom), d.attributes(), Style(), d.pen.out.String())
	if err != nil {
		return fmt.Errorf("writing the plot %q: %w", p.Title, err)
	}
	return nil
}

// Inline is the plot as a part of a page that has [Style] in it.
func Inline(p result.Plot) string {
	d := drawn(p)
	return "<svg " + d.attributes() + "\n" + d.pen.out.String() + "</svg>\n"
}

// attributes are what every picture's first element has, and its name.
func (d *drawing) attributes() string {
	return fmt.Sprintf(`viewBox="0 0 %s %s" font-family="%s" role="img"><title>%s</title>`, n(across), n(d.bottom), family, escaped(d.plot.Title))
}

// drawing is a picture that grows downwards.
type drawing struct {
	pen    pen
	plot   result.Plot
	x, y   axis
	area   box     // of the data
	bottom float64 // of what has been drawn
	missed int     // points that have no place on a logarithmic axis
}

func drawn(p result.Plot) *drawing {
	d := &drawing{plot: legibly(p), bottom: margin}
	d.pen.out.WriteString(`<rect class="bg" width="100%" height="100%"/>` + "\n")
	d.title()
	d.legend()
	d.axes()
	d.lines()
	d.key()
	d.bottom += margin
	return d
}

// title is the plot's, in as many lines as it needs.
func (d *drawing) title() {
	const bolder = 1.27 // than the widths of plain letters
	for _, line := range wrapped(d.plot.Title, bolder*heading().size, across-2*margin) {
		d.bottom += row
		d.pen.text(point{margin, d.bottom}, start, heading(), line)
	}
	d.bottom += row / 2
}

// axes draws the frame of the data: both axes, what they are called, and the
// marks that cross it.
func (d *drawing) axes() {
	x, y := d.extents()
	d.y = vertical(d.plot.Y, y)
	widest := 0.0
	for _, t := range d.y.ticks {
		widest = max(widest, Width(t.text, plain().size))
	}
	d.area.left, d.area.right = max(widest+2*margin, edge), across-edge
	d.x = horizontal(d.plot.X, x, d.area.right-d.area.left)
	d.bottom += row
	d.pen.text(point{margin, d.bottom}, start, label(), fitted(d.y.caption, label().size, across-2*margin))
	d.bottom += 0.8 * row
	d.area.top = d.bottom
	if len(d.plot.Marks) > 0 {
		d.area.top += row + lift
	}
	d.area.bottom = d.area.top + high
	d.grid()
	d.marks()
	d.bottom = d.area.bottom + 2*row
	d.pen.text(point{(d.area.left + d.area.right) / 2, d.bottom}, middle, label(), fitted(d.x.caption, label().size, across-2*margin))
}

// grid is the ticks of both axes, each with a line through the data.
func (d *drawing) grid() {
	for _, t := range d.y.ticks {
		at := d.at(d.x.from, t.at)
		d.pen.line("g", at, point{d.area.right, at.y})
		d.pen.text(point{d.area.left - margin/2, at.y + 4}, end, plain(), t.text)
	}
	for _, t := range d.x.ticks {
		at := d.at(t.at, d.y.from)
		d.pen.line("g", point{at.x, d.area.top}, at)
		d.pen.text(point{at.x, at.y + 18}, middle, plain(), fitted(t.text, plain().size, 2*edge))
	}
	d.pen.line("f", point{d.area.left, d.area.top}, point{d.area.left, d.area.bottom})
	d.pen.line("f", point{d.area.left, d.area.bottom}, point{d.area.right, d.area.bottom})
}

// at is where a value of each axis is drawn.
func (d *drawing) at(x, y float64) point {
	return point{
		d.area.left + d.x.share(x)*(d.area.right-d.area.left),
		d.area.bottom - d.y.share(y)*(d.area.bottom-d.area.top),
	}
}
