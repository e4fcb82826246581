package fleet

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
)

const (
	// stretches is the number of pieces of a run. Each piece is one sample of its figures.
	stretches = 10
	// lateMost is the p99 of the drivers' lateness above which the report has a note.
	lateMost = 5 * time.Millisecond
)

// Document returns the report of the load.
func (m *Measured) Document() *report.Document {
	d := &report.Document{Scenario: m.Scenario.Name, Title: m.title(), Checks: m.checks.Checks}
	m.figures(d)
	m.promises(d)
	d.Tables = append(d.Tables, m.kinds(), m.processes())
	if len(m.Failures) > 0 {
		d.Tables = append(d.Tables, m.failures())
	}
	d.Plots, d.Notes = m.plots(), m.notes()
	if a := m.Scenario.Runaway; a.Agents > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d more agents ran away: each sent %v times the limit of %v events per second and agent. Their calls are in no figure.", a.Agents, a.Times, a.Limit))
	}
	return d
}

func (m *Measured) title() string {
	s := m.Scenario
	return fmt.Sprintf("%d agents on %d connections: %.0f tool calls per second for %v", s.Agents, s.Connections,
		s.Curve().Calls()/s.Curve().Long().Seconds(), s.For)
}

// A Stretch is one piece of a load.
type Stretch struct {
	load.Kind
	from, until int // seconds
}

// Rate returns the number of answers per second.
func (s Stretch) Rate() float64 { return float64(s.Answered) / float64(s.until-s.from) }

// Stretches returns equally long pieces of a time in whole seconds, because comparisons with
// other runs need several samples.
func (m *Measured) Stretches(from, until time.Duration) (all []Stretch) {
	first, seconds := int(from/time.Second), max(int((until-from)/time.Second), 1)
	n := min(stretches, seconds)
	for i := range n {
		from, until := first+seconds*i/n, first+seconds*(i+1)/n
		all = append(all, Stretch{m.Series.Between(from, until), from, until})
	}
	return all
}

// cpu returns the CPU time of the fabric between two moments; 0: unknown.
func (m *Measured) cpu(from, until float64) float64 {
	at := func(moment float64) float64 {
		for _, s := range m.Samples {
			if s.At >= moment {
				return s.cpu()
			}
		}
		return 0
	}
	return max(at(until)-at(from), 0)
}

// cpu returns the CPU time of the fabric until then: that of all members except the
// scenario's own.
func (s Sample) cpu() float64 {
	all := 0.0
	for name, u := range s.Members {
		if !own(name) {
			all += u.CPU
		}
	}
	return all
}

// Total returns the counts from one second of the measurement to another.
func (m *Measured) Total(from, until time.Duration) load.Kind {
	return m.Series.Between(int(from/time.Second), int(until/time.Second))
}

// figures adds the figures that can be compared between runs.
func (m *Measured) figures(d *report.Document) {
	var cpu, bare, answered []float64
	samples := map[string][]float64{}
	for _, p := range m.Stretches(0, m.Scenario.For.Std()) {
		answered = append(answered, p.Rate())
		if used := m.cpu(float64(p.from), float64(p.until)); used > 0 && p.Answered > 0 {
			cpu = append(cpu, used/float64(p.Answered))
		}
		if p.Latency.Count() == 0 {
			continue // a stretch without calls has no latency
		}
		for _, q := range Quantiles() {
			samples[q.Name] = append(samples[q.Name], p.Latency.At(q.At))
		}
		if aside := m.Bare.Between(p.from, p.until); aside.Latency.Count() > 0 {
			bare = append(bare, p.Latency.At(0.5)/aside.Latency.At(0.5))
		}
	}
	add := func(name, unit string, better report.Direction, samples []float64) *report.Figure {
		d.Figures = append(d.Figures, report.Figured(name, unit, better, samples))
		return &d.Figures[len(d.Figures)-1]
	}
	for _, q := range Quantiles() {
		add(q.Name, "s", report.Lower, samples[q.Name])
	}
	// The medians do not show a stall in one stretch of ten; these figures do. One sample
	// has no confidence interval, so these figures have no budget.
	whole := m.Total(0, m.Scenario.For.Std())
	for _, q := range Quantiles()[1:] {
		add(q.Name+" of the whole run", "s", report.Neither, []float64{whole.Latency.At(q.At)})
	}
	add("events answered", "/s", report.Higher, answered)
	if len(bare) > 0 {
		f := add(bareRatio, "ratio", report.Lower, bare)
		if most := bareBudget(m.Scenario); most > 0 {
			f.Budget = &most
		}
	}
	if len(cpu) > 0 {
		add("CPU time of the fabric per event", "s", report.Lower, cpu)
	}
}

// A Quantile is a quantile and its name.
type Quantile struct {
	Name string
	At   float64
}

// Quantiles returns the quantiles of reports.
func Quantiles() []Quantile { return []Quantile{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}} }

// promises adds the audit's findings, and how often each promise must have been tested.
func (m *Measured) promises(d *report.Document) {
	s := m.Scenario.Shares
	const rounding = 1e-9
	guarded := s.Sum() < 1-rounding || s.Deny > 0 || s.Rewrite > 0 // calls outside all shares are guarded
	least := map[string]bool{
		deniesHonoured: s.Deny > 0, noneElse: s.Deny < 1, guardsAsked: guarded, inputsRight: s.Rewrite > 0, trailsRight: true,
		ownVerdict: guarded || s.Slow > 0, inTime: true, waitsEnd: true, seenAfter: s.Sum() < 1-rounding || s.Rewrite > 0,
		allAnswered: !m.Scenario.Excused(), hooksAnswered: !m.Scenario.Excused(), limitKept: m.Scenario.Runaway.Agents > 0,
	}
	for _, name := range slices.Sorted(maps.Keys(least)) {
		if least[name] {
			d.Check(name).Least = 1
		}
	}
	d.Checks = append(d.Checks, m.offered())
	if m.Told > 0 {
		d.Checks = append(d.Checks, m.Findings.Checks(1)...)
	}
}

// kinds returns the table of latencies by class of call, and of all calls of the whole run.
// The figures are medians of stretches, which do not show a stall in one of them.
func (m *Measured) kinds() report.Table {
	t := report.Table{
		Title:   "Events by the hooks that they match, from their planned time",
		Columns: []string{"", "due", "p50", "p99", "p99.9", "longest", "no answer", "not sent"},
		Note: "Events without an answer, and events not sent because too many were in flight, count as waiting until their deadline. " +
			"The table has quantiles of the whole run; the figures are medians over parts of it. The row for all events excludes the slow hook.",
	}
	all := m.Total(0, m.Scenario.For.Std())
	t.Rows = append(t.Rows, kindRow("all", &all))
	kinds := m.Series.Kinds()
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Rows = append(t.Rows, kindRow(name, kinds[name]))
	}
	return t
}

func kindRow(name string, k *load.Kind) []string {
	row := []string{name, strconv.FormatInt(k.Offered, 10)}
	for _, q := range append(Quantiles(), Quantile{At: 1}) {
		row = append(row, report.Value(k.Latency.At(q.At), "s"))
	}
	return append(row, strconv.FormatInt(k.Failed, 10), strconv.FormatInt(k.Unsent, 10))
}

// processes returns the table of the processes' usage during the measurement.
func (m *Measured) processes() report.Table {
	t := report.Table{Title: "Processes", Columns: []string{"", "CPUs", "memory at first", "memory at last", "most"}}
	if len(m.Samples) < 2 {
		return t
	}
	first, last := m.Samples[0], m.Samples[len(m.Samples)-1]
	for _, name := range slices.Sorted(maps.Keys(last.Members)) {
		from, to := first.Members[name], last.Members[name]
		t.Rows = append(t.Rows, []string{
			name, fmt.Sprintf("%.2f", max(to.CPU-from.CPU, 0)/(last.At-first.At)),
			report.Value(float64(from.RSS), "B"), report.Value(float64(to.RSS), "B"), report.Value(float64(to.Peak), "B"),
		})
	}
	return t
}

// failures returns the table of calls and hooks without an answer.
func (m *Measured) failures() report.Table {
	t := report.Table{Title: "Without an answer", Columns: []string{"", "how often"}}
	for _, what := range slices.Sorted(maps.Keys(m.Failures)) {
		t.Rows = append(t.Rows, []string{what, strconv.FormatInt(m.Failures[what], 10)})
	}
	return t
}

// notes returns the notes that a reader needs.
func (m *Measured) notes() []string {
	late, service := m.Series.Late.At(0.99), m.Series.Service.At(0.99)
	notes := []string{fmt.Sprintf("Calls started %s (p50) and %s (p99) after their planned time. From their start they took %s (p50) and %s (p99).",
		report.Value(m.Series.Late.At(0.5), "s"), report.Value(late, "s"), report.Value(m.Series.Service.At(0.5), "s"), report.Value(service, "s"))}
	if k := m.Series.Kinds()[string(slow)]; k != nil {
		notes = append(notes, fmt.Sprintf("%d calls match the slow hook, which itself takes up to %v. They are in the table but in no figure.", k.Offered, slowest))
	}
	if late > lateMost.Seconds() {
		notes = append(notes, "The drivers started calls late, because the machine was busy. The latencies include this delay.")
	}
	if n := m.deadDrivers(); n > 0 {
		notes = append(notes, fmt.Sprintf("Drivers were killed %d times. Figures and checks exclude the counts of the last %v before each kill, and the calls until the next driver was ready: they cover %d tool calls of about %.0f.",
			n, cutEvery, m.uses(), m.Scenario.Curve().Calls()))
	}
	if n := len(m.Waits); n > 0 {
		at := func(q float64) string { return report.Value(m.Waits[min(int(q*float64(n)), n-1)].Seconds(), "s") }
		notes = append(notes, fmt.Sprintf("%d messages were delivered %s (p50), %s (p99) and at most %s after their receipt. A message waits for the next event of its agent.",
			m.Findings.Delivered, at(0.5), at(0.99), at(1)))
	}
	if m.Early {
		notes = append(notes, fmt.Sprintf("The load was interrupted after %v. The run did not wait for %d messages that were not delivered yet.", m.Scenario.For, m.Findings.Lost.Wrong))
	}
	if m.left.agents > 0 {
		notes = append(notes, m.left.String())
	}
	if m.ending != nil {
		notes = append(notes, fmt.Sprintf("Stopping the processes failed, perhaps because of the interruption: %v", m.ending))
	}
	if n := m.Findings.Excused.Wrong; n > 0 {
		notes = append(notes, fmt.Sprintf("%d messages arrived twice because their process was killed between delivery and acknowledgement. This is allowed.", n))
	}
	return notes
}

// asLarge is a promise of the drivers, not of the fabric: a load below the plan would
// improve all figures.
const asLarge = "the agents made the planned number of calls"

// scatter is how many standard deviations the number of random calls may be below the
// expected one. One run in a thousand million is further off.
const scatter = 6

// offered compares the tool uses that the drivers counted with those that were due. A note
// reports the calls that were lost with a killed driver.
func (m *Measured) offered() report.Check {
	c := report.Check{Name: asLarge, Seen: 1, Least: 1}
	due, counted := m.Scenario.Curve().Calls(), m.uses()
	if m.deadDrivers() == 0 && float64(counted) < due-scatter*math.Sqrt(due) {
		c.Fail(fmt.Sprintf("%d tool calls were counted instead of about %.0f", counted, due))
	}
	return c
}

// uses returns how many tool uses were due and counted, with any result.
func (m *Measured) uses() int64 {
	all := int64(0)
	for name, k := range m.Series.Kinds() {
		if name != afterwards {
			all += k.Offered
		}
	}
	return all
}

// deadDrivers returns how often a driver was killed.
func (m *Measured) deadDrivers() int {
	n := 0
	for _, d := range m.Done {
		if d.Fault.Kind == faults.Kill && strings.HasPrefix(d.Fault.Member, scenario.Driver+"-") {
			n++
		}
	}
	return n
}

// own reports whether a member belongs to the scenario, not to the fabric.
func own(member string) bool {
	kind := faults.KindOf(member)
	return kind == scenario.Driver || kind == scenario.Producer || kind == behindDaemon
}

func (m *Measured) plots() []report.Plot {
	plot := func(title string, y report.Axis) report.Plot {
		return report.Plot{Title: title, X: report.Axis{Label: "time since measuring began", Unit: "s"}, Y: y, Marks: faults.Marks(m.Done, m.Began)}
	}
	latency := plot("Latency over time, by the second in which calls were due", report.Axis{Label: "latency", Unit: "s", Log: true})
	rates := plot("Planned and answered events over time", report.Axis{Label: "events", Unit: "/s"})
	latency.Lines, rates.Lines = make([]report.Line, len(Quantiles())), []report.Line{{Name: "due"}, {Name: "answered"}}
	for _, row := range m.whole() {
		at := float64(row.Second) + 0.5
		rates.Lines[0].Add(at, float64(row.Offered))
		rates.Lines[1].Add(at, float64(row.Answered))
		k := m.Series.Between(row.Second, row.Second+1)
		for i, q := range Quantiles() {
			if latency.Lines[i].Name = q.Name; k.Latency.Count() > 0 {
				latency.Lines[i].Add(at, k.Latency.At(q.At))
			}
		}
	}
	memory := plot("Memory of each process over time", report.Axis{Label: "resident memory", Unit: "B"})
	for _, s := range m.Samples {
		for name, u := range s.Members {
			memory.Line(name).Add(s.At, float64(u.RSS))
		}
	}
	slices.SortFunc(memory.Lines, func(a, b report.Line) int { return strings.Compare(a.Name, b.Name) })
	return []report.Plot{latency, rates, memory}
}

// whole returns the seconds that were measured completely.
func (m *Measured) whole() []load.Row {
	rows, seconds := m.Series.Rows(), int(m.Scenario.For.Std().Seconds())
	return slices.DeleteFunc(rows, func(r load.Row) bool { return r.Second >= seconds })
}
