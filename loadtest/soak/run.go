package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/loadtest/chaos"
	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// Run puts up the fabric, has it under load, and says whether anything grew.
func Run(ctx context.Context, asked *scenario.Scenario, st fleet.Stage) (*result.Document, error) {
	s := disturbed(asked)
	x, err := fleet.Open(ctx, s, st)
	if err != nil {
		return nil, err
	}
	m, left, err := load(ctx, s, x)
	if err = x.End(m, err); err != nil {
		return nil, err
	}
	d, err := m.Document()
	if err != nil {
		return nil, err
	}
	if s.Soak.Chaos {
		if err := chaos.Add(d, m); err != nil {
			return nil, err
		}
	}
	all := judged(m, left)
	d.Checks = append(d.Checks, checks(all)...)
	d.Tables = append(d.Tables, table(all))
	d.Figures = append(d.Figures, figures(all)...)
	d.Plots = append(d.Plots, plots(left, m)...)
	d.Notes = append(d.Notes, fmt.Sprintf("The fabric's processes collect their garbage every %v, which affects latency.", s.SettleEvery()))
	return d, nil
}

// disturbed is the scenario with the faults that are drawn for it.
func disturbed(asked *scenario.Scenario) *scenario.Scenario {
	s := *asked
	if !s.Soak.Chaos {
		return &s
	}
	until := schema.Duration(float64(s.For) * scenario.SoakLives)
	drawn := slices.DeleteFunc(chaos.Draw(&s), func(f faults.Fault) bool {
		return f.Kind == faults.Kill && ofFabric(f.Member) && f.At > until
	})
	s.Faults, s.Fabric.Links = append(slices.Clone(s.Faults), drawn...), true
	return &s
}

// load has the load done, and the garbage collected meanwhile.
func load(ctx context.Context, s *scenario.Scenario, x *fleet.Session) (*fleet.Measured, []left, error) {
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
		for measure.Pause(over, s.SettleEvery()) {
			some, err := settled(over, x.Field())
			if err != nil && over.Err() == nil {
				return err
			}
			all = append(all, some...)
		}
		return nil
	})
	err := g.Wait() // only then are both there
	return m, all, err
}

// left is what a process holds when its garbage was collected.
type left struct {
	member string
	at     time.Time
	roles.Settled
}

// settled has the fabric's processes collect their garbage. One that is dead at
// that moment is left out.
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

// ofFabric reports whether a member is the fabric's, and not the scenario's.
func ofFabric(member string) bool {
	return slices.Contains([]string{field.Server, field.Broker, field.Worker}, chaos.KindOf(member))
}

// judged is how all quantities of the fabric's processes went, each since the
// last time that one of them was killed.
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
		all = append(all, c.judged(born(m, c.member), m.Scenario.PerSecond()*m.Scenario.Injections))
	}
	explained(all)
	return all
}

// born is when the process began that is in the member's place now, in seconds
// since measuring began.
func born(m *fleet.Measured, member string) float64 {
	at := 0.0
	for _, d := range m.Done {
		if d.Fault.Kind == faults.Kill && d.Fault.Member == member {
			at = max(at, d.Until.Sub(m.Began).Seconds())
		}
	}
	return at
}

// plots are what was left over time.
func plots(settled []left, m *fleet.Measured) []result.Plot {
	x := result.Axis{Label: "time since measuring began", Unit: "s"}
	marks := faults.Marks(m.Done, m.Began)
	heap := result.Plot{Title: "Heap after a collection over time", X: x, Y: result.Axis{Label: "heap in use", Unit: "B"}, Marks: marks}
	goroutines := result.Plot{Title: "Goroutines over time", X: x, Y: result.Axis{Label: "goroutines"}, Marks: marks}
	lines := map[string]int{}
	for _, l := range settled {
		i, ok := lines[l.member]
		if !ok {
			i = len(heap.Lines)
			lines[l.member] = i
			heap.Lines = append(heap.Lines, result.Line{Name: l.member})
			goroutines.Lines = append(goroutines.Lines, result.Line{Name: l.member})
		}
		at := l.at.Sub(m.Began).Seconds()
		h, g := &heap.Lines[i], &goroutines.Lines[i]
		h.X, h.Y = append(h.X, at), append(h.Y, float64(l.Heap))
		g.X, g.Y = append(g.X, at), append(g.Y, float64(l.Goroutines))
	}
	return []result.Plot{heap, goroutines}
}
