package saturate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// lateMost is the delay of the drivers, in seconds, from which on a note warns.
const lateMost = 0.005

// document adds the results of the search; early: it did not finish.
func (s *search) document(d *report.Document, early bool) {
	var marks []report.Mark
	if !early {
		d.Figures = append(d.Figures, report.Figured("knee: tools used", "/s", report.Higher, []float64{s.knee}))
		marks = []report.Mark{{X: s.knee, Label: "knee"}}
	}
	var lines [3]report.Line
	table := report.Table{
		Title:   "Rates, in the order of the search",
		Columns: []string{"tool calls per second", "planned events", "answered in time", "p50", "p99", "p99.9", "started late, p99", "kept up"},
		Note: fmt.Sprintf("The fabric keeps up if at least %.4g %% of the events are answered in time and p99 is at most %s. A rate counts as kept up with if %d measurements show it before %d show the opposite. Answers to events planned just before a measurement count. \"Started late\" is the delay of the drivers.",
			s.scenario.Knee.Answered*100, report.Value(s.bound(), "s"), agree, agree),
	}
	for _, p := range s.points {
		row := []string{strconv.Itoa(int(p.rate)), strconv.FormatInt(p.Offered, 10), fmt.Sprintf("%.1f %%", p.answered()*100)}
		for _, q := range fleet.Quantiles() {
			row = append(row, report.Value(p.Latency.At(q.At), "s"))
		}
		table.Rows = append(table.Rows, append(row, report.Value(p.late, "s"), yes(p.keeps)))
	}
	for _, p := range s.sorted() {
		for i, q := range fleet.Quantiles() {
			lines[i].Name = q.Name
			lines[i].Add(p.rate, p.Latency.At(q.At))
		}
	}
	d.Tables = append(d.Tables, table)
	d.Plots = append(d.Plots, report.Plot{
		Title: "Planned load against latency", Lines: lines[:], Marks: marks,
		X: report.Axis{Label: "planned tool calls", Unit: "/s"}, Y: report.Axis{Label: "latency", Unit: "s", Log: true},
	})
	s.notes(d, early)
}

// notes explain the results.
func (s *search) notes(d *report.Document, early bool) {
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

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
