package soak

import (
	"fmt"
	"math"
	"slices"

	"github.com/hookfabric/hookfabric/loadtest/chaos"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
	"github.com/hookfabric/hookfabric/loadtest/stats"
)

const (
	// bins is how many points of a course are judged at most: each is the median of
	// a stretch, as what a collector takes and gives back from one second to the
	// next is not independent.
	bins = 60
)

// A quantity is something that must not grow.
type quantity struct {
	name, unit string
	// part and more are what it may grow by while it is judged: a part of what it
	// was, and so much whatever it was. It must be surely above both to be wrong.
	part, more float64
	// told is what a broker or a server may take for each injection beyond that: the
	// fabric knows for a day which ones it has delivered, and so grows for a day. headroom
	// is how many times what its heap grew by it may take instead.
	told, headroom float64
}

const (
	kib = 1 << 10
	mib = 1 << 20
	// known is what an injection that was delivered may take of the heap for a day, of a
	// broker and of a server that may be in it: about 150 and 100 B were seen. headroom is
	// how many times the heap the memory of a process may be, as the fabric's programs
	// tell their collectors: it may grow by that of what the heap grew by, and no more.
	known    = 0.4 * kib
	headroom = 5
)

func quantities() (rss, heap, goroutines, files, threads quantity) {
	return quantity{"memory", "B", 0.03, 4 * mib, 0, headroom}, quantity{"heap", "B", 0.03, 2 * mib, known, 0},
		quantity{"goroutines", "", 0.03, 50, 0, 0}, quantity{"open files", "", 0.03, 10, 0, 0}, quantity{"threads", "", 0.1, 10, 0, 0}
}

// keeps reports whether a member knows of injections that were delivered.
func keeps(member string) bool { return chaos.KindOf(member) != field.Worker }

// A course is how a quantity of one member went.
type course struct {
	quantity
	member string
	x, y   []float64
}

func (c *course) add(x, y float64) { c.x, c.y = append(c.x, x), append(c.y, y) }

// growth is how much it grew while it was judged.
type growth struct {
	*course
	stats.Estimate
	from, until, level float64
	points             int
	told               float64 // injections meanwhile
	heap               float64 // what its heap grew by
}

// judged is the second half of the course, from some moment on: in the first one
// caches fill, and pools of everything. Told is how many injections there were per
// second.
func (c *course) judged(from, told float64) growth {
	i, _ := slices.BinarySearch(c.x, from)
	x, y := c.x[i:], c.y[i:]
	half := len(x) / 2
	x, y = x[half:], y[half:]
	g := growth{course: c, level: stats.Median(y)}
	if len(x) > 0 {
		g.from, g.until = x[0], x[len(x)-1]
	}
	x, y = binned(x, y)
	g.points = len(x)
	slope, long := stats.Slope(x, y), g.until-g.from
	if keeps(c.member) {
		g.told = told * long
	}
	g.Estimate = stats.Estimate{Median: slope.Median * long, Low: slope.Low * long, High: slope.High * long}
	return g
}

// binned are the medians of stretches.
func binned(x, y []float64) (bx, by []float64) {
	n := min(len(x), bins)
	for i := range n {
		from, until := len(x)*i/n, len(x)*(i+1)/n
		bx, by = append(bx, stats.Median(x[from:until])), append(by, stats.Median(y[from:until]))
	}
	return bx, by
}

// allowed is what it may grow by.
func (g growth) allowed() float64 {
	return max(g.part*g.level, g.more) + g.told*g.quantity.told + g.headroom*g.heap
}

// explained tells each memory what the heap in it grew by, as far as injections explain that.
func explained(all []growth) {
	rss, heap, _, _, _ := quantities()
	for i := range all {
		for _, h := range all {
			if all[i].name == rss.name && h.name == heap.name && h.member == all[i].member && h.told > 0 {
				all[i].heap = max(min(h.Median, h.told*h.quantity.told), 0)
			}
		}
	}
}

// promise is what is held of the quantity.
func (g growth) promise() string {
	if g.quantity.told > 0 || g.headroom > 0 {
		return g.name + " did not grow by more than the index of delivered messages"
	}
	return g.name + " did not grow"
}

// enough reports whether there was enough of it to judge.
func (g growth) enough() bool { return g.points >= scenario.SoakPoints }

// flat is false only if it surely grew by more than it may.
func (g growth) flat() bool { return g.Low <= g.allowed() }

func (g growth) String() string {
	of := func(v float64) string { return units.Value(v, g.unit) }
	return fmt.Sprintf("%s of %s grew by %s (at least %s) from %.0f s to %.0f s; the limit is %s",
		g.name, g.member, of(g.Median), of(g.Low), g.from, g.until, of(g.allowed()))
}

// checks hold each quantity of all members against its bound.
func checks(all []growth) []result.Check {
	var d result.Document
	for _, g := range all {
		c := d.Check(g.promise())
		c.Least++
		if !g.enough() {
			continue
		}
		c.Seen++
		if !g.flat() {
			c.Fail(g.String())
		}
	}
	return d.Checks
}

// table is what was judged.
func table(all []growth) result.Table {
	t := result.Table{
		Title:   "Growth in the second half of the run",
		Columns: []string{"process", "what", "level", "growth", "95 % interval", "limit"},
		Note:    "Growth is the slope over all pairs of points (Theil-Sen) in the second half of the run. It fails only if its whole interval is above the limit.",
	}
	if slices.ContainsFunc(all, func(g growth) bool { return g.told > 0 }) {
		t.Note += fmt.Sprintf(" The limit of the heap includes %s per message, because brokers remember delivered messages for a day. The limit of the memory includes %d times the allowed growth of the heap.", units.Value(known, "B"), headroom)
	}
	for _, g := range all {
		of := func(v float64) string { return units.Value(v, g.unit) }
		row := []string{g.member, g.name, of(g.level), "too few points", "", of(g.allowed())}
		if g.enough() {
			row[3], row[4] = of(g.Median), fmt.Sprintf("[%s %s]", of(g.Low), of(g.High))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// figures are the growths in memory that can be compared with another run's.
func figures(all []growth) []result.Figure {
	_, heap, _, _, _ := quantities()
	var figures []result.Figure
	for _, g := range all {
		if g.unit == "B" && g.enough() && !math.IsInf(g.Low, 0) {
			f := result.Figure{Name: fmt.Sprintf("%s of %s, growth", g.name, g.member), Unit: g.unit, Better: result.Neither, Value: g.Median, Low: g.Low, High: g.High}
			figures = append(figures, f)
			if g.told > 0 && g.name == heap.name {
				f.Name, f.Better = fmt.Sprintf("%s of %s, growth per injection", g.name, g.member), result.Lower
				f.Value, f.Low, f.High = f.Value/g.told, f.Low/g.told, f.High/g.told
				figures = append(figures, f)
			}
		}
	}
	return figures
}
