package result

import (
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/machine"
	"github.com/hookfabric/hookfabric/loadtest/stats"
)

// A Document is what a run showed.
type Document struct {
	// Scenario is the subcommand, or the name of the scenario's file.
	Scenario string `json:"scenario"`
	// Title says in a line what was done, with the numbers that matter.
	Title string `json:"title"`
	// Started is when, Took how long in seconds.
	Started time.Time `json:"started"`
	Took    float64   `json:"took"`
	// Interrupted is what ended the run before it was over; empty: nothing did.
	Interrupted string `json:"interrupted,omitzero"`
	// Command is what was typed, without the flags that say where to write to.
	Command string `json:"command,omitzero"`
	// Machine is where it ran, and with what.
	Machine machine.Facts `json:"machine"`
	// Figures are what can be compared with another run of the same scenario.
	Figures []Figure `json:"figures,omitzero"`
	// Checks are what was held against the fabric's promises while it ran.
	Checks []Check `json:"checks,omitzero"`
	Tables []Table `json:"tables,omitzero"`
	Plots  []Plot  `json:"plots,omitzero"`
	// Notes are sentences that a reader needs to read the figures right.
	Notes []string `json:"notes,omitzero"`
}

// OK reports whether every check and every budget was kept.
func (d *Document) OK() bool {
	return !slices.ContainsFunc(d.Checks, func(c Check) bool { return !c.OK() }) &&
		!slices.ContainsFunc(d.Figures, func(f Figure) bool { return !f.OK() })
}

// Result is the document itself, so that whatever embeds one can be asked for it.
func (d *Document) Result() *Document { return d }

// Check finds the check of that name and adds it if there is none yet.
func (d *Document) Check(name string) *Check {
	i := slices.IndexFunc(d.Checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		i = len(d.Checks)
		d.Checks = append(d.Checks, Check{Name: name})
	}
	return &d.Checks[i]
}

// Better says which of two values of a figure is the better one.
type Better string

// Most figures are times or sizes; the zero Better is Lower.
const (
	Lower  Better = ""
	Higher Better = "higher"
	// Neither is a figure that describes and is not judged.
	Neither Better = "neither"
)

// A Figure is one number that a run measured, with what says how sure it is.
type Figure struct {
	// Name says what it is, alike in every run of the scenario.
	Name string `json:"name"`
	// Unit is "ratio", "s", "/s", "B", or a word for what is counted.
	Unit   string `json:"unit"`
	Better Better `json:"better,omitzero"`
	// Value is the median of the samples, Low and High its 95 % interval.
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Samples are the repetitions, or the figure of each of some stretches of
	// time that are long enough not to depend on each other.
	Samples []float64 `json:"samples,omitzero"`
	// Budget is what the figure must keep to; null: there is none.
	Budget *float64 `json:"budget,omitzero"`
}

// Figured is the figure that samples come to.
func Figured(name, unit string, better Better, samples []float64) Figure {
	e := stats.Estimated(samples)
	return Figure{Name: name, Unit: unit, Better: better, Value: e.Median, Low: e.Low, High: e.High, Samples: samples}
}

// Within is the figure with a budget.
func (f Figure) Within(budget float64) Figure {
	f.Budget = &budget
	return f
}

// OK is false only if the whole interval is beyond the budget.
func (f Figure) OK() bool {
	switch {
	case f.Budget == nil || f.Better == Neither:
		return true
	case f.Better == Higher:
		return f.High >= *f.Budget
	default:
		return f.Low <= *f.Budget
	}
}

// examples bounds the wrong things that a check tells in words.
const examples = 10

// A Check is one promise, and how often it was looked at and broken.
type Check struct {
	// Name is the promise as a sentence: "no answer came after its deadline".
	Name string `json:"name"`
	// Seen is how often the promise was at stake. A check that saw nothing of
	// what it had to see proves nothing: Least is how often at least.
	Seen  int64 `json:"seen"`
	Least int64 `json:"least,omitzero"`
	// Wrong is how often it was broken, Examples some of them in words.
	Wrong    int64    `json:"wrong"`
	Examples []string `json:"examples,omitzero"`
}

// OK reports whether the promise was kept, and was put to the test.
func (c Check) OK() bool { return c.Wrong == 0 && c.Seen >= c.Least }

// Add adds what another process saw of the same promise.
func (c *Check) Add(other Check) {
	c.Seen += other.Seen
	c.Wrong += other.Wrong
	c.Examples = append(c.Examples, other.Examples[:min(len(other.Examples), max(examples-len(c.Examples), 0))]...)
}

// Fail counts one time that the promise was broken.
func (c *Check) Fail(example string) {
	c.Wrong++
	if len(c.Examples) < examples {
		c.Examples = append(c.Examples, example)
	}
}

// A Table is for people, in the terminal and in the report.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	// Note says how to read it; empty: it needs no saying.
	Note string `json:"note,omitzero"`
}

// A Plot is a picture: lines over one horizontal axis.
type Plot struct {
	Title string `json:"title"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	Lines []Line `json:"lines"`
	// Marks are moments on the horizontal axis at which something was done to
	// the fabric.
	Marks []Mark `json:"marks,omitzero"`
}

// An Axis is named with its unit. Values are in SI units: seconds, bytes.
type Axis struct {
	// Label is what is drawn beside it, without the unit.
	Label string `json:"label"`
	// Unit is "s", "B", "/s", "" for a bare number.
	Unit string `json:"unit"`
	// Log is a logarithmic axis, which never starts at zero and says so.
	Log bool `json:"log,omitzero"`
}

// A Line is a row of points in growing x, with a name for the legend. Where
// nothing was measured there is no point.
type Line struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
	// Low and High are the interval around each point; absent: there is none.
	Low  []float64 `json:"low,omitzero"`
	High []float64 `json:"high,omitzero"`
}

// A Mark is something that was done to the fabric: at X, until Until (0: it was
// a moment).
type Mark struct {
	X     float64 `json:"x"`
	Until float64 `json:"until,omitzero"`
	// Label is short: "kill -9 worker-1".
	Label string `json:"label"`
	// Group is what it has in common with others, of which there may be so many that
	// nobody reads each: "kill of a worker"; empty: it has nothing.
	Group string `json:"group,omitzero"`
}
