package fleet

import (
	"maps"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/load"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
)

// own reports whether a member is a process of the scenario, and not of the fabric.
func own(member string) bool {
	return strings.HasPrefix(member, scenario.Driver+"-") || strings.HasPrefix(member, scenario.Producer+"-")
}

// plots are how it went over time.
func (m *Measured) plots() ([]result.Plot, error) {
	marks := faults.Marks(m.Done, m.Began)
	time := result.Axis{Label: "time since measuring began", Unit: "s"}
	latency := result.Plot{
		Title: "Latency over time, by the second in which calls were due", X: time,
		Y: result.Axis{Label: "latency", Unit: "s", Log: true}, Marks: marks,
	}
	rates := result.Plot{Title: "Planned and answered events over time", X: time, Y: result.Axis{Label: "events", Unit: "/s"}, Marks: marks}
	due, answered := result.Line{Name: "due"}, result.Line{Name: "answered"}
	lines := make([]result.Line, len(quantiles()))
	for _, row := range m.whole() {
		at := float64(row.Second) + 0.5
		due.X, due.Y = append(due.X, at), append(due.Y, float64(row.Offered))
		answered.X, answered.Y = append(answered.X, at), append(answered.Y, float64(row.Answered))
		k, err := m.Series.Between(row.Second, row.Second+1)
		if err != nil {
			return nil, err
		}
		if k.Latency.Count() == 0 {
			continue
		}
		for i, q := range quantiles() {
			lines[i].Name = q.name
			lines[i].X, lines[i].Y = append(lines[i].X, at), append(lines[i].Y, k.Latency.At(q.at))
		}
	}
	latency.Lines, rates.Lines = lines, []result.Line{due, answered}
	memory := m.memory()
	memory.X, memory.Marks = time, marks
	return []result.Plot{latency, rates, memory}, nil
}

// whole are the seconds that were measured from beginning to end.
func (m *Measured) whole() []load.Row {
	rows, seconds := m.Series.Rows(), int(m.Scenario.For.Std().Seconds())
	return slices.DeleteFunc(rows, func(r load.Row) bool { return r.Second >= seconds })
}

// memory is how that of each process went.
func (m *Measured) memory() result.Plot {
	p := result.Plot{Title: "Memory of each process over time", Y: result.Axis{Label: "resident memory", Unit: "B"}}
	names := map[string]bool{}
	for _, s := range m.Samples {
		for name := range s.Members {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		l := result.Line{Name: name}
		for _, s := range m.Samples {
			if u, ok := s.Members[name]; ok {
				l.X, l.Y = append(l.X, s.At), append(l.Y, float64(u.RSS))
			}
		}
		p.Lines = append(p.Lines, l)
	}
	return p
}
