package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
)

const (
	// bins is the highest number of points of a course that are judged. Each is the median
	// of a stretch, because a collector's effects on successive seconds are not
	// independent.
	bins = 60
)

// A quantity is something that must not grow.
type quantity struct {
	name, unit string
	// part and more limit its growth while it is judged: part is relative to its level, and
	// more is absolute. Growth is wrong only if it surely exceeds both.
	part, more float64
	// told is the additional growth of a broker or a server for each injection: the fabric
	// remembers delivered injections for a day. headroom is how many times the growth of
	// its heap it may grow by instead.
	told, headroom float64
}

const (
	kib = 1 << 10
	mib = 1 << 20
	// known is the heap, in bytes, that a delivered injection may take for a day in a
	// broker and a server in it. About 150 and 100 B were measured. headroom is the ratio
	// of a process's memory to its heap that the fabric's programs set for their
	// collectors. Memory may grow by at most that multiple of the heap's growth.
	known    = 0.4 * kib
	headroom = 5
)

func quantities() (rss, heap, goroutines, files, threads quantity) {
	return quantity{"memory", "B", 0.03, 4 * mib, 0, headroom}, quantity{"heap", "B", 0.03, 2 * mib, known, 0},
		quantity{"goroutines", "", 0.03, 50, 0, 0}, quantity{"open files", "", 0.03, 10, 0, 0}, quantity{"threads", "", 0.1, 10, 0, 0}
}

// keeps reports whether a member remembers delivered injections.
func keeps(member string) bool { return faults.KindOf(member) != field.Worker }

// A course is a quantity of one member over time.
type course struct {
	quantity
	member string
	x, y   []float64
}

func (c *course) add(x, y float64) { c.x, c.y = append(c.x, x), append(c.y, y) }

// growth is the growth of a course while it was judged.
type growth struct {
	*course
	report.Estimate
	from, until, level float64
	points             int
	told               float64 // injections in this time
	heap               float64 // growth of its heap
}

// judged returns the growth in the second half of the course after from. In the first half
// caches and pools fill. told is the number of injections per second.
func (c *course) judged(from, told float64) growth {
	i, _ := slices.BinarySearch(c.x, from)
	x, y := c.x[i:], c.y[i:]
	half := len(x) / 2
	x, y = x[half:], y[half:]
	g := growth{course: c, level: report.Median(y)}
	if len(x) > 0 {
		g.from, g.until = x[0], x[len(x)-1]
	}
	x, y = binned(x, y)
	g.points = len(x)
	slope, long := report.Slope(x, y), g.until-g.from
	if keeps(c.member) {
		g.told = told * long
	}
	g.Estimate = report.Estimate{Median: slope.Median * long, Low: slope.Low * long, High: slope.High * long}
	return g
}

// binned returns the medians of stretches.
func binned(x, y []float64) (bx, by []float64) {
	n := min(len(x), bins)
	for i := range n {
		from, until := len(x)*i/n, len(x)*(i+1)/n
		bx, by = append(bx, report.Median(x[from:until])), append(by, report.Median(y[from:until]))
	}
	return bx, by
}

// allowed returns the growth limit.
func (g growth) allowed() float64 {
	return max(g.part*g.level, g.more) + g.told*g.quantity.told + g.headroom*g.heap
}

// explained sets the heap growth of each memory quantity, as far as injections explain it.
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

func (g growth) promise() string {
	if g.quantity.told > 0 || g.headroom > 0 {
		return g.name + " did not grow by more than the index of delivered messages"
	}
	return g.name + " did not grow"
}

// enough reports whether it has enough points to judge.
func (g growth) enough() bool { return g.points >= scenario.SoakPoints }

// flat reports whether the growth may be within its limit. It is false only if the growth
// surely exceeds it.
func (g growth) flat() bool { return g.Low <= g.allowed() }

func (g growth) String() string {
	of := func(v float64) string { return report.Value(v, g.unit) }
	return fmt.Sprintf("%s of %s grew by %s (at least %s) from %.0f s to %.0f s; the limit is %s",
		g.name, g.member, of(g.Median), of(g.Low), g.from, g.until, of(g.allowed()))
}

// growthChecks returns the checks of each quantity of all members against its limit.
func growthChecks(all []growth) []report.Check {
	var d report.Document
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

// growthTable returns the table of the judged quantities.
func growthTable(all []growth) report.Table {
	t := report.Table{
		Title:   "Growth in the second half of the run",
		Columns: []string{"process", "what", "level", "growth", "95 % interval", "limit"},
		Note:    "Growth is the slope over all pairs of points (Theil-Sen) in the second half of the run. It fails only if its whole interval is above the limit.",
	}
	if slices.ContainsFunc(all, func(g growth) bool { return g.told > 0 }) {
		t.Note += fmt.Sprintf(" The limit of the heap includes %s per message, because brokers remember delivered messages for a day. The limit of the memory includes %d times the allowed growth of the heap.", report.Value(known, "B"), headroom)
	}
	for _, g := range all {
		of := func(v float64) string { return report.Value(v, g.unit) }
		row := []string{g.member, g.name, of(g.level), "too few points", "", of(g.allowed())}
		if g.enough() {
			row[3], row[4] = of(g.Median), fmt.Sprintf("[%s %s]", of(g.Low), of(g.High))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// growthFigures returns the memory growths that can be compared with another run.
func growthFigures(all []growth) []report.Figure {
	_, heap, _, _, _ := quantities()
	var figures []report.Figure
	for _, g := range all {
		if g.unit == "B" && g.enough() && !math.IsInf(g.Low, 0) {
			f := report.Figure{Name: fmt.Sprintf("%s of %s, growth", g.name, g.member), Unit: g.unit, Better: report.Neither, Value: g.Median, Low: g.Low, High: g.High}
			figures = append(figures, f)
			if g.told > 0 && g.name == heap.name {
				f.Name, f.Better = fmt.Sprintf("%s of %s, growth per injection", g.name, g.member), report.Lower
				f.Value, f.Low, f.High = f.Value/g.told, f.Low/g.told, f.High/g.told
				figures = append(figures, f)
			}
		}
	}
	return figures
}

// soak puts the fabric under load, and collects garbage in its processes at intervals.
func soak(ctx context.Context, s *scenario.Scenario, x *fleet.Session) (*fleet.Measured, []left, error) {
	var m *fleet.Measured
	var all []left
	g, together := errgroup.WithContext(ctx)
	over, end := context.WithCancel(together)
	g.Go(func() (err error) {
		defer end()
		m, err = x.Load(together, s)
		return err
	})
	g.Go(func() error {
		for load.Pause(over, s.SettleEvery()) {
			some, err := settled(over, x.Field())
			if err != nil && over.Err() == nil {
				return err
			}
			all = append(all, some...)
		}
		return nil
	})
	err := g.Wait() // both exist only then
	return m, all, err
}

// addGrowth adds to a report whether memory, goroutines, threads and files grew.
func addGrowth(d *report.Document, m *fleet.Measured, settled []left) {
	all := judged(m, settled)
	d.Checks = append(d.Checks, growthChecks(all)...)
	d.Tables = append(d.Tables, growthTable(all))
	d.Figures = append(d.Figures, growthFigures(all)...)
	d.Plots = append(d.Plots, heapPlots(settled, m)...)
	d.Notes = append(d.Notes, fmt.Sprintf("The fabric's processes collect their garbage every %v, which affects latency.", m.Scenario.SettleEvery()))
}

// left is what a process holds after a garbage collection.
type left struct {
	member string
	at     time.Time
	roles.Settled
}

// settled makes the fabric's processes collect their garbage. It leaves out processes that
// are down.
func settled(ctx context.Context, f *field.Field) ([]left, error) {
	var all []left
	for _, name := range f.Members() {
		if !ofFabric(name) {
			continue
		}
		l := left{member: name, at: time.Now()}
		err := f.Member(name).Ask(ctx, struct{}{}, &l.Settled)
		if errors.Is(err, faults.ErrKilled) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("having %s collect its garbage: %w", name, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// ofFabric reports whether a member belongs to the fabric, not to the scenario.
func ofFabric(member string) bool {
	return slices.Contains([]string{field.Server, field.Broker, field.Worker}, faults.KindOf(member))
}

// judged returns the growth of all quantities of the fabric's processes, each since the
// last kill of its process.
func judged(m *fleet.Measured, settled []left) []growth {
	rss, heap, goroutines, files, threads := quantities()
	courses := map[string]*course{}
	var order []*course
	add := func(q quantity, member string, x, y float64) {
		key := member + " " + q.name
		if courses[key] == nil {
			courses[key] = &course{quantity: q, member: member}
			order = append(order, courses[key])
		}
		courses[key].add(x, y)
	}
	end := m.Scenario.For.Std().Seconds()
	for _, s := range m.Samples {
		for name, u := range s.Members {
			if ofFabric(name) && s.At <= end {
				add(rss, name, s.At, float64(u.RSS))
				add(files, name, s.At, float64(u.Files))
				add(threads, name, s.At, float64(u.Threads))
			}
		}
	}
	for _, l := range settled {
		if x := l.at.Sub(m.Began).Seconds(); x >= 0 && x <= end {
			add(heap, l.member, x, float64(l.Heap))
			add(goroutines, l.member, x, float64(l.Goroutines))
		}
	}
	slices.SortStableFunc(order, func(a, b *course) int { return cmp.Or(cmp.Compare(a.member, b.member), cmp.Compare(a.name, b.name)) })
	var all []growth
	for _, c := range order {
		all = append(all, c.judged(born(m, c.member), m.Scenario.Rate*m.Scenario.Injections))
	}
	explained(all)
	return all
}

// born returns when the member's current process began, in seconds since measuring began.
func born(m *fleet.Measured, member string) float64 {
	at := 0.0
	for _, d := range m.Done {
		if d.Fault.Kind == faults.Kill && d.Fault.Member == member {
			at = max(at, d.Until.Sub(m.Began).Seconds())
		}
	}
	return at
}

func heapPlots(settled []left, m *fleet.Measured) []report.Plot {
	x, marks := report.Axis{Label: "time since measuring began", Unit: "s"}, faults.Marks(m.Done, m.Began)
	heap := report.Plot{Title: "Heap after a collection over time", X: x, Y: report.Axis{Label: "heap in use", Unit: "B"}, Marks: marks}
	goroutines := report.Plot{Title: "Goroutines over time", X: x, Y: report.Axis{Label: "goroutines"}, Marks: marks}
	for _, l := range settled {
		at := l.at.Sub(m.Began).Seconds()
		heap.Line(l.member).Add(at, float64(l.Heap))
		goroutines.Line(l.member).Add(at, float64(l.Goroutines))
	}
	return []report.Plot{heap, goroutines}
}
