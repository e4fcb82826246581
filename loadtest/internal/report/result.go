package report

import (
	"slices"
	"time"
)

// A Document is the report of a run.
type Document struct {
	// Scenario is the subcommand, or the name of the scenario's file.
	Scenario string `json:"scenario"`
	// Title describes the run in one line, with the main numbers.
	Title string `json:"title"`
	// Started is when the run began. Took is its duration in seconds.
	Started time.Time `json:"started"`
	Took    float64   `json:"took"`
	// Interrupted is what ended the run early; empty: the run is complete.
	Interrupted string `json:"interrupted,omitzero"`
	// Command is the command line, without the flags for output.
	Command string `json:"command,omitzero"`
	// Machine describes the machine and the versions.
	Machine Facts `json:"machine"`
	// Figures can be compared with another run of the same scenario.
	Figures []Figure `json:"figures,omitzero"`
	// Checks are the fabric's promises that the run checked.
	Checks []Check `json:"checks,omitzero"`
	Tables []Table `json:"tables,omitzero"`
	Plots  []Plot  `json:"plots,omitzero"`
	// Notes are sentences that help to read the figures.
	Notes []string `json:"notes,omitzero"`
}

// OK reports whether every check and every budget was kept.
func (d *Document) OK() bool {
	return !slices.ContainsFunc(d.Checks, func(c Check) bool { return !c.OK() }) &&
		!slices.ContainsFunc(d.Figures, func(f Figure) bool { return !f.OK() })
}

// Result returns the document itself. Types that embed a Document have this method.
func (d *Document) Result() *Document { return d }

// Check returns the check of that name. It adds the check if it does not exist.
func (d *Document) Check(name string) *Check {
	i := slices.IndexFunc(d.Checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		i = len(d.Checks)
		d.Checks = append(d.Checks, Check{Name: name})
	}
	return &d.Checks[i]
}

// Figure returns the figure of that name; false: there is none.
func (d *Document) Figure(name string) (Figure, bool) {
	i := slices.IndexFunc(d.Figures, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		return Figure{}, false
	}
	return d.Figures[i], true
}

// Merge adds checks of the same promises.
func (d *Document) Merge(checks []Check) {
	for _, c := range checks {
		to := d.Check(c.Name)
		to.Add(c)
		to.Least = max(to.Least, c.Least)
	}
}

// A Direction says which of two values of a figure is the better one.
type Direction string

// Most figures are times or sizes; the zero Direction is Lower.
const (
	Lower  Direction = ""
	Higher Direction = "higher"
	// Neither marks a figure that describes and has no better direction.
	Neither Direction = "neither"
)

// A Figure is one number that a run measured, with its uncertainty.
type Figure struct {
	// Name is the same in every run of the scenario.
	Name string `json:"name"`
	// Unit is "ratio", "s", "/s", "B", or a word for what is counted.
	Unit   string    `json:"unit"`
	Better Direction `json:"better,omitzero"`
	// Value is the median of the samples. Low and High are its 95 % interval.
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Samples are the repetitions, or the values of successive periods that are long enough
	// to be independent.
	Samples []float64 `json:"samples,omitzero"`
	// Budget is the limit of the figure; null: no limit.
	Budget *float64 `json:"budget,omitzero"`
}

// Figured returns the figure of samples.
func Figured(name, unit string, better Direction, samples []float64) Figure {
	e := Estimated(samples)
	return Figure{Name: name, Unit: unit, Better: better, Value: e.Median, Low: e.Low, High: e.High, Samples: samples}
}

// Within returns the figure with a budget.
func (f Figure) Within(budget float64) Figure {
	f.Budget = &budget
	return f
}

// OK reports whether the value is within the budget.
func (f Figure) OK() bool {
	switch {
	case f.Budget == nil || f.Better == Neither:
		return true
	case f.Better == Higher:
		return f.Value >= *f.Budget
	default:
		return f.Value <= *f.Budget
	}
}

// mostExamples limits the examples of a check.
const mostExamples = 10

// A Check is one promise, and how often it was tested and broken.
type Check struct {
	// Name is the promise as a sentence: "no answer came after its deadline".
	Name string `json:"name"`
	// Seen is how often the promise was tested. Least is the lowest number for a valid
	// check, because a check that tested less proves nothing.
	Seen  int64 `json:"seen"`
	Least int64 `json:"least,omitzero"`
	// Wrong is how often it was broken. Examples describe some of these cases.
	Wrong    int64    `json:"wrong"`
	Examples []string `json:"examples,omitzero"`
}

// OK reports whether the promise was tested often enough and never broken.
func (c Check) OK() bool { return c.Wrong == 0 && c.Seen >= c.Least }

// Add adds another process's counts of the same promise.
func (c *Check) Add(other Check) {
	c.Seen += other.Seen
	c.Wrong += other.Wrong
	c.Examples = append(c.Examples, other.Examples[:min(len(other.Examples), max(mostExamples-len(c.Examples), 0))]...)
}

// Fail counts one time that the promise was broken.
func (c *Check) Fail(example string) {
	c.Wrong++
	if len(c.Examples) < mostExamples {
		c.Examples = append(c.Examples, example)
	}
}

// A Table is for people, in the terminal and in the report.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	// Note explains how to read it; empty: it needs no explanation.
	Note string `json:"note,omitzero"`
}

// A Plot has lines over one horizontal axis.
type Plot struct {
	Title string `json:"title"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	Lines []Line `json:"lines"`
	// Marks are faults or other actions on the fabric, on the horizontal axis.
	Marks []Mark `json:"marks,omitzero"`
}

// An Axis is named with its unit. Values are in SI units: seconds, bytes.
type Axis struct {
	// Label is the text beside it, without the unit.
	Label string `json:"label"`
	// Unit is "s", "B", "/s", "" for a bare number.
	Unit string `json:"unit"`
	// Log selects a logarithmic axis, which never starts at zero and is marked as such.
	Log bool `json:"log,omitzero"`
}

// A Line is a series of points in growing x, with a name for the legend. It has no points
// where nothing was measured.
type Line struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
	// Low and High are the interval around each point; absent: no interval.
	Low  []float64 `json:"low,omitzero"`
	High []float64 `json:"high,omitzero"`
}

// Add adds a point.
func (l *Line) Add(x, y float64) { l.X, l.Y = append(l.X, x), append(l.Y, y) }

// Line returns the line of that name. It adds the line if it does not exist.
func (p *Plot) Line(name string) *Line {
	i := slices.IndexFunc(p.Lines, func(l Line) bool { return l.Name == name })
	if i < 0 {
		i = len(p.Lines)
		p.Lines = append(p.Lines, Line{Name: name})
	}
	return &p.Lines[i]
}

// A Mark is an action on the fabric from X until Until; Until 0: a single moment.
type Mark struct {
	X     float64 `json:"x"`
	Until float64 `json:"until,omitzero"`
	// Label is short: "kill -9 worker-1".
	Label string `json:"label"`
	// Group names a group of similar marks, such as "kill of a worker", because a run may
	// have too many marks to read each; empty: no group.
	Group string `json:"group,omitzero"`
}
