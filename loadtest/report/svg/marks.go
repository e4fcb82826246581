package svg

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/result"
)

// group is marks that stand so near to each other that they share a badge: from
// one number to another.
type group struct {
	first, last int // counted from 1
	left, right float64
}

// lift is how far badges stand above the data, clear of the highest tick.
const lift = 4.0

// text is the badge's: "3", or "3–9".
func (g group) text() string {
	if g.first == g.last {
		return fmt.Sprint(g.first)
	}
	return fmt.Sprintf("%d–%d", g.first, g.last)
}

// box is where the badge has its place above the data.
func (g group) box(area box) box {
	half := Width(g.text(), badge().size)/2 + gap
	at := min(max((g.left+g.right)/2, half), area.right+edge-half)
	return box{at - half, area.top - row - lift, at + half, area.top - 2 - lift}
}

// ordered are the marks that have a place on the axis, from left to right.
func (d *drawing) ordered() []result.Mark {
	marks := slices.DeleteFunc(slices.Clone(d.plot.Marks), func(m result.Mark) bool { return !drawable(m.X, d.plot.X.Log) })
	slices.SortStableFunc(marks, func(a, b result.Mark) int { return cmp.Compare(a.X, b.X) })
	return marks
}

// crowd is how many marks are too many to have a line through the data each, and how many
// labels are too many to be read. foot is how long the lines are then.
const (
	crowd = 30
	foot  = 14.0
)

// marks draws what was done to the fabric: a line for each moment, a band for
// what lasted, and above them their numbers. Where there are very many the lines are
// short, or nobody would see the data through them.
func (d *drawing) marks() {
	d.bands()
	var groups []group
	marks, until := d.ordered(), d.area.bottom
	if len(marks) > crowd {
		until = d.area.top + foot
	}
	for i, m := range marks {
		x := d.at(m.X, d.y.from).x
		d.pen.line("mark", point{x, d.area.top}, point{x, until})
		groups = d.grouped(append(groups, group{i + 1, i + 1, x, x}))
	}
	for _, g := range groups {
		b := g.box(d.area)
		d.pen.box("badge", b)
		d.pen.text(point{(b.left + b.right) / 2, b.bottom - 5}, middle, badge(), g.text())
	}
}

// bands draws what lasted, and what overlaps as one band: the data must be seen
// through all of them.
func (d *drawing) bands() {
	var open box
	for _, m := range d.ordered() {
		if m.Until <= m.X {
			continue
		}
		from := d.at(m.X, d.y.from).x
		one := box{from, d.area.top, max(d.at(m.Until, d.y.from).x, from+1), d.area.bottom}
		if open.right >= one.left {
			open.right = max(open.right, one.right)
			continue
		}
		if open.right > 0 {
			d.pen.box("during", open)
		}
		open = one
	}
	if open.right > 0 {
		d.pen.box("during", open)
	}
}

// grouped puts the last group together with those before it whose badges it
// would touch.
func (d *drawing) grouped(groups []group) []group {
	const apart = 2
	for len(groups) > 1 {
		before, last := groups[len(groups)-2], groups[len(groups)-1]
		if before.box(d.area).right+apart <= last.box(d.area).left {
			break
		}
		groups = append(groups[:len(groups)-2], group{before.first, last.last, before.left, last.right})
	}
	return groups
}

// key says below the data what the numbers of the marks are, and what is missing.
func (d *drawing) key() {
	entries := d.entries()
	if d.missed > 0 {
		entries = append(entries, fmt.Sprintf("not drawn, as a logarithmic axis has no place for them: %d of the points", d.missed))
	}
	if len(entries) == 0 {
		return
	}
	f := flow{left: margin, right: across - margin, x: margin, y: d.bottom + row + row/2}
	for _, text := range entries {
		text = fitted(text, plain().size, f.right-f.left)
		d.pen.text(f.place(Width(text, plain().size)), start, plain(), text)
	}
	d.bottom = f.y
}

// entries are the key's: each label once, with the numbers of its marks, or what they
// have in common where there are too many.
func (d *drawing) entries() []string {
	const most = 60
	labels, numbers := d.labelled(func(m result.Mark) string { return m.Label })
	if len(labels) > crowd {
		labels, numbers = d.labelled(func(m result.Mark) string { return cmp.Or(m.Group, m.Label) })
	}
	var entries []string
	for i, name := range labels {
		if i == most {
			return append(entries, fmt.Sprintf("and %d more kinds", len(labels)-most))
		}
		entries = append(entries, counted(numbers[name])+": "+name)
	}
	return entries
}

// labelled are the labels of marks in their order, and the numbers of each.
func (d *drawing) labelled(label func(result.Mark) string) (labels []string, numbers map[string][]string) {
	numbers = map[string][]string{}
	for i, m := range d.ordered() {
		name := label(m)
		if len(numbers[name]) == 0 {
			labels = append(labels, name)
		}
		numbers[name] = append(numbers[name], fmt.Sprint(i+1))
	}
	return labels, numbers
}

// counted lists numbers, and only counts those that are too many to read.
func counted(numbers []string) string {
	const most = 16
	if len(numbers) <= most {
		return strings.Join(numbers, ", ")
	}
	return fmt.Sprintf("%s … (%d times)", strings.Join(numbers[:most], ", "), len(numbers))
}
