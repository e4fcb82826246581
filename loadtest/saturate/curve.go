package saturate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// lateMost is the delay of the drivers, in seconds, from which on a note warns.
const lateMost = 0.005

// document adds the results of the search; early: it did not finish.
func (s *search) document(d *result.Document, early bool) {
	var marks []result.Mark
	if !early {
		d.Figures = append(d.Figures, result.Figured("knee: tools used", "/s", result.Higher, []float64{s.knee}))
		marks = []result.Mark{{X: s.knee, Label: "knee"}}
	}
	var lines [3]result.Line
	table := result.Table{
		Title:   "Rates, in the order of the search",
		Columns: []string{"tool calls per second", "planned events", "answered in time", "p50", "p99", "p99.9", "started late, p99", "kept up"},
		Note: fmt.Sprintf("The fabric keeps up if at least %.4g %% of the events are answered in time and p99 is at most %s. A rate counts as kept up with if %d measurements show it before %d show the opposite. Answers to events planned just before a measurement count. \"Started late\" is the delay of the drivers.",
			s.scenario.Knee.Answered*100, units.Value(s.bound(), "s"), agree, agree),
	}
	for _, p := range s.points {
		row := []string{strconv.Itoa(int(p.rate)), strconv.FormatInt(p.Offered, 10), fmt.Sprintf("%.1f %%", p.answered()*100)}
		for _, q := range quantiles() {
			row = append(row, units.Value(p.Latency.At(q.at), "s"))
		}
		table.Rows = append(table.Rows, append(row, units.Value(p.late, "s"), yes(p.keeps)))
	}
	for _, p := range s.sorted() {
		for i, q := range quantiles() {
			lines[i].Name = q.name
			lines[i].X, lines[i].Y = append(lines[i].X, p.rate), append(lines[i].Y, p.Latency.At(q.at))
		}
	}
	d.Tables = append(d.Tables, table)
	d.Plots = append(d.Plots, result.Plot{
		Title: "Planned load against latency", Lines: lines[:], Marks: marks,
		X: result.Axis{Label: "planned tool calls", Unit: "/s"}, Y: result.Axis{Label: "latency", Unit: "s", Log: true},
	})
	s.notes(d, early)
}

// notes explain the results.
func (s *search) notes(d *result.Document, early bool) {
	switch {
	case early && s.beyond == 0:
		d.Notes = append(d.Notes, fmt.Sprintf("The search did not finish: the fabric kept up with %.0f tool calls per second, and higher rates were not measured often enough.", s.knee))
	case early:
		d.Notes = append(d.Notes, fmt.Sprintf("The search did not finish: the fabric kept up with %.0f tool calls per second, and not with %.0f.", s.knee, s.beyond))
	case s.beyond == 0:
		d.Notes = append(d.Notes, "The fabric kept up with the highest rate of the search, so the knee is above it.")
	default:
		d.Notes = append(d.Notes, fmt.Sprintf("The knee is the highest rate that the fabric kept up with; %.0f per second is the lowest that it did not. Repeat the search to see how much results vary.", s.beyond))
	}
	if slices.ContainsFunc(s.points, func(p point) bool { return p.late > lateMost }) {
		d.Notes = append(d.Notes, "At some rates the drivers started calls late. They share the machine with the fabric, so the knee is that of both together.")
	}
}

// sorted returns one point for each rate, in order: the one with the median p99.
func (s *search) sorted() []point {
	tries := map[float64][]point{}
	for _, p := range s.points {
		tries[p.rate] = append(tries[p.rate], p)
	}
	var all []point
	for _, of := range tries {
		slices.SortFunc(of, func(a, b point) int { return cmp.Compare(a.Latency.At(0.99), b.Latency.At(0.99)) })
		all = append(all, of[len(of)/2])
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Compare(a.rate, b.rate) })
	return all
}

type quantile struct {
	name string
	at   float64
}

func quantiles() []quantile { return []quantile{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}} }

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
