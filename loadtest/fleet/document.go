package fleet

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/load"
	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
)

const (
	// stretches is the number of pieces of a run. Each piece is one sample of its figures.
	stretches = 10
	// lateMost is the p99 of the drivers' lateness above which the report has a note.
	lateMost = 5 * time.Millisecond
)

// Document returns the report of the load.
func (m *Measured) Document() (*result.Document, error) {
	d := &result.Document{Scenario: m.Scenario.Name, Title: m.title(), Checks: m.checks.Checks}
	if err := m.figures(d); err != nil {
		return nil, err
	}
	m.promises(d)
	kinds, err := m.kinds()
	if err != nil {
		return nil, err
	}
	d.Tables = append(d.Tables, kinds, m.processes())
	if len(m.Failures) > 0 {
		d.Tables = append(d.Tables, m.failures())
	}
	plots, err := m.plots()
	if err != nil {
		return nil, err
	}
	d.Plots = plots
	d.Notes = m.notes()
	if said := runaway(m.Scenario); said != "" {
		d.Notes = append(d.Notes, said)
	}
	return d, nil
}

func (m *Measured) title() string {
	s := m.Scenario
	return fmt.Sprintf("%d agents on %d connections: %.0f tool calls per second for %v", s.Agents, s.Connections,
		s.Curve().Calls()/s.Curve().Long().Seconds(), s.For)
}

// stretch is one piece of the run.
type stretch struct {
	load.Kind
	bare load.Kind
	long float64 // seconds
	cpu  float64 // of the fabric, in seconds
}

// pieces returns the stretches, which are equally long.
func (m *Measured) pieces() ([]stretch, error) {
	seconds := max(int(m.Scenario.For.Std()/time.Second), 1)
	n := min(stretches, seconds)
	var all []stretch
	for i := range n {
		from, until := seconds*i/n, seconds*(i+1)/n
		k, err := m.Series.Between(from, until)
		if err != nil {
			return nil, err
		}
		bare, err := m.Bare.Between(from, until)
		if err != nil {
			return nil, err
		}
		all = append(all, stretch{Kind: k, bare: bare, long: float64(until - from), cpu: m.cpu(float64(from), float64(until))})
	}
	return all, nil
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
func (m *Measured) Total(from, until time.Duration) (load.Kind, error) {
	return m.Series.Between(int(from/time.Second), int(until/time.Second))
}

// figures adds the figures that can be compared between runs.
func (m *Measured) figures(d *result.Document) error {
	pieces, err := m.pieces()
	if err != nil {
		return err
	}
	var cpu, bare []float64
	samples := map[string][]float64{}
	for _, p := range pieces {
		for _, q := range quantiles() {
			if p.Latency.Count() > 0 { // a stretch without calls has no latency
				samples[q.name] = append(samples[q.name], p.Latency.At(q.at))
			}
		}
		samples["answered"] = append(samples["answered"], float64(p.Answered)/p.long)
		if p.Latency.Count() > 0 && p.bare.Latency.Count() > 0 {
			bare = append(bare, p.Latency.At(0.5)/p.bare.Latency.At(0.5))
		}
		if p.cpu > 0 && p.Answered > 0 {
			cpu = append(cpu, p.cpu/float64(p.Answered))
		}
	}
	for _, q := range quantiles() {
		d.Figures = append(d.Figures, result.Figured(q.name, "s", result.Lower, samples[q.name]))
	}
	whole, err := m.Total(0, m.Scenario.For.Std())
	if err != nil {
		return err
	}
	// The medians do not show a stall in one stretch of ten; these figures do. One sample
	// has no confidence interval, so these figures have no budget.
	for _, q := range quantiles()[1:] {
		d.Figures = append(d.Figures, result.Figured(q.name+" of the whole run", "s", result.Neither, []float64{whole.Latency.At(q.at)}))
	}
	d.Figures = append(d.Figures, result.Figured("events answered", "/s", result.Higher, samples["answered"]))
	if len(bare) > 0 {
		f := result.Figured(bareRatio, "ratio", result.Lower, bare)
		if most := bareBudget(m.Scenario); most > 0 {
			f = f.Within(most)
		}
		d.Figures = append(d.Figures, f)
	}
	if len(cpu) > 0 {
		d.Figures = append(d.Figures, result.Figured("CPU time of the fabric per event", "s", result.Lower, cpu))
	}
	return nil
}

// quantile is a quantile and its name.
type quantile struct {
	name string
	at   float64
}

func quantiles() []quantile { return []quantile{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}} }

// promises adds the audit's findings, and how often each promise must have been tested.
func (m *Measured) promises(d *result.Document) {
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
func (m *Measured) kinds() (result.Table, error) {
	t := result.Table{
		Title:   "Events by the hooks that they match, from their planned time",
		Columns: []string{"", "due", "p50", "p99", "p99.9", "longest", "no answer", "not sent"},
		Note: "Events without an answer, and events not sent because too many were in flight, count as waiting until their deadline. " +
			"The table has quantiles of the whole run; the figures are medians over parts of it. The row for all events excludes the slow hook.",
	}
	all, err := m.Total(0, m.Scenario.For.Std())
	if err != nil {
		return t, err
	}
	t.Rows = append(t.Rows, kindRow("all", &all))
	kinds := m.Series.Kinds()
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Rows = append(t.Rows, kindRow(name, kinds[name]))
	}
	return t, nil
}

func kindRow(name string, k *load.Kind) []string {
	row := []string{name, strconv.FormatInt(k.Offered, 10)}
	for _, q := range append(quantiles(), quantile{at: 1}) {
		row = append(row, units.Value(k.Latency.At(q.at), "s"))
	}
	return append(row, strconv.FormatInt(k.Failed, 10), strconv.FormatInt(k.Unsent, 10))
}

// processes returns the table of the processes' usage during the measurement.
func (m *Measured) processes() result.Table {
	t := result.Table{Title: "Processes", Columns: []string{"", "CPUs", "memory at first", "memory at last", "most"}}
	if len(m.Samples) < 2 {
		return t
	}
	first, last := m.Samples[0], m.Samples[len(m.Samples)-1]
	for _, name := range slices.Sorted(maps.Keys(last.Members)) {
		from, to := first.Members[name], last.Members[name]
		t.Rows = append(t.Rows, []string{
			name, fmt.Sprintf("%.2f", max(to.CPU-from.CPU, 0)/(last.At-first.At)),
			units.Value(float64(from.RSS), "B"), units.Value(float64(to.RSS), "B"), units.Value(float64(to.Peak), "B"),
		})
	}
	return t
}

// failures returns the table of calls and hooks without an answer.
func (m *Measured) failures() result.Table {
	t := result.Table{Title: "Without an answer", Columns: []string{"", "how often"}}
	for _, what := range slices.Sorted(maps.Keys(m.Failures)) {
		t.Rows = append(t.Rows, []string{what, strconv.FormatInt(m.Failures[what], 10)})
	}
	return t
}

// notes returns the notes that a reader needs.
func (m *Measured) notes() []string {
	late, service := m.Series.Late.At(0.99), m.Series.Service.At(0.99)
	notes := []string{fmt.Sprintf("Calls started %s (p50) and %s (p99) after their planned time. From their start they took %s (p50) and %s (p99).",
		units.Value(m.Series.Late.At(0.5), "s"), units.Value(late, "s"), units.Value(m.Series.Service.At(0.5), "s"), units.Value(service, "s"))}
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
		at := func(q float64) string { return units.Value(m.Waits[min(int(q*float64(n)), n-1)].Seconds(), "s") }
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
func (m *Measured) offered() result.Check {
	c := result.Check{Name: asLarge, Seen: 1, Least: 1}
	due, counted := m.Scenario.Curve().Calls(), m.uses()
	least := due - scatter*math.Sqrt(due)
	if m.Scenario.Arrivals == load.Constant {
		least = due - float64(m.Scenario.Agents) // each agent may have one call more or less
	}
	if m.deadDrivers() == 0 && float64(counted) < least {
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
	kind, _, _ := strings.Cut(member, "-")
	return kind == scenario.Driver || kind == scenario.Producer || kind == behindDaemon
}

// plots returns the plots over time.
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

// whole returns the seconds that were measured completely.
func (m *Measured) whole() []load.Row {
	rows, seconds := m.Series.Rows(), int(m.Scenario.For.Std().Seconds())
	return slices.DeleteFunc(rows, func(r load.Row) bool { return r.Second >= seconds })
}

// memory returns the plot of the memory of each process.
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
