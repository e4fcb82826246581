package svg

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// pen writes the elements of a picture.
type pen struct{ out strings.Builder }

// anchor is the part of a text that stands at its place.
type anchor string

const (
	start  anchor = "start"
	middle anchor = "middle"
	end    anchor = "end"
)

// A style is how text looks; sizes are attributes of the elements, so that who
// reads the picture knows how large each text is.
type style struct {
	class string
	size  float64
}

func heading() style { return style{"h", 16} }
func plain() style   { return style{"t", 13} }
func label() style   { return style{"l", 13} }
func badge() style   { return style{"b", 11} }

func (p *pen) text(at point, a anchor, s style, text string) {
	fmt.Fprintf(&p.out, `<text class="%s" x="%s" y="%s" font-size="%s" text-anchor="%s">%s</text>`+"\n",
		s.class, n(at.x), n(at.y), n(s.size), a, escaped(text))
}

func (p *pen) line(class string, from, to point) {
	fmt.Fprintf(&p.out, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", class, n(from.x), n(from.y), n(to.x), n(to.y))
}

func (p *pen) box(class string, b box) {
	fmt.Fprintf(&p.out, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`+"\n",
		class, n(b.left), n(b.top), n(b.right-b.left), n(b.bottom-b.top))
}

// dot is a point that was measured; title is shown where a pointer stays on it.
func (p *pen) dot(class string, at point, title string) {
	fmt.Fprintf(&p.out, `<circle class="%s" cx="%s" cy="%s" r="3.2"><title>%s</title></circle>`+"\n", class, n(at.x), n(at.y), escaped(title))
}

// path draws through points; closed paths are areas.
func (p *pen) path(class, dash string, points []point, closed bool) {
	fmt.Fprintf(&p.out, `<path class="%s"`, class)
	if dash != "" {
		fmt.Fprintf(&p.out, ` stroke-dasharray="%s"`, dash)
	}
	p.out.WriteString(` d="`)
	for i, at := range points {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		p.out.WriteString(verb + n(at.x) + " " + n(at.y))
	}
	if closed {
		p.out.WriteString("Z")
	}
	p.out.WriteString("\"/>\n")
}

// n is a coordinate, as exact as an eye can see.
func n(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}

type point struct{ x, y float64 }

type box struct{ left, top, right, bottom float64 }
