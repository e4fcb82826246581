package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// A Verdict is the result of one comparison.
type Verdict string

// Changed is for figures that are neither better nor worse, or have too few samples.
// Untested is for checks that one side did not test.
const (
	Same     Verdict = "same"
	Better   Verdict = "better"
	Worse    Verdict = "worse"
	Changed  Verdict = "changed"
	Untested Verdict = "not tested"
)

// enough is the smallest number of samples of a side with which a difference can be
// significant.
const enough = 4

// A Change is one figure of both sides.
type Change struct {
	Old, New Figure
	// P is the probability that chance alone makes the samples differ this much.
	P       float64
	Verdict Verdict
}

// A Comparison compares runs with earlier ones.
type Comparison struct {
	// Old and New are the runs, at least one each.
	Old, New []*Document
	Changes  []Change
	// Checks are the checks of either side.
	Checks []Held
	// OnlyOld and OnlyNew are the names of figures that some runs of the other side lack.
	OnlyOld, OnlyNew []string
	// Threshold is the relative change that a figure must exceed.
	Threshold float64
}

// Compare compares the new runs with the old ones. It ignores changes up to threshold (0.03 is 3 %).
func Compare(olds, news []*Document, threshold float64) *Comparison {
	c := &Comparison{Old: olds, New: news, Threshold: threshold, Checks: heldChecks(olds, news)}
	names := func(runs []*Document) (all []string) {
		for _, run := range runs {
			for _, f := range run.Figures {
				if !slices.Contains(all, f.Name) {
					all = append(all, f.Name)
				}
			}
		}
		return all
	}
	for _, name := range names(news) {
		before, ok := c.together(name, olds)
		now, also := c.together(name, news)
		if ok && also && before.Unit == now.Unit {
			c.Changes = append(c.Changes, changed(before, now, threshold))
		} else {
			c.OnlyNew = append(c.OnlyNew, name)
		}
	}
	for _, name := range names(olds) {
		if !slices.ContainsFunc(c.Changes, func(c Change) bool { return c.New.Name == name }) {
			c.OnlyOld = append(c.OnlyOld, name)
		}
	}
	return c
}

// together returns a figure of all runs of a side; false: some runs lack it. Each run is
// one sample if there are enough runs on both sides; otherwise the samples are those of all runs.
func (c *Comparison) together(name string, runs []*Document) (Figure, bool) {
	var figure Figure
	var values, samples []float64
	for _, run := range runs {
		i := slices.IndexFunc(run.Figures, func(f Figure) bool { return f.Name == name })
		if i < 0 {
			return figure, false
		}
		figure = run.Figures[i]
		values, samples = append(values, figure.Value), append(samples, figure.Samples...)
	}
	if c.byRun() {
		samples = values
	}
	figure.Value, figure.Samples = Median(values), samples
	return figure, true
}

// byRun reports whether each run is a sample.
func (c *Comparison) byRun() bool { return len(c.Old) >= enough && len(c.New) >= enough }

// Common reports whether the sides have a figure or a check in common.
func (c *Comparison) Common() bool {
	return len(c.Changes) > 0 || slices.ContainsFunc(c.Checks, func(h Held) bool { return h.Old.Runs > 0 && h.New.Runs > 0 })
}

// OK reports whether nothing got worse.
func (c *Comparison) OK() bool { return c.count(Worse) == 0 }

// count returns the number of figures and checks with a verdict.
func (c *Comparison) count(v Verdict) int {
	n := 0
	for _, one := range c.Changes {
		if one.Verdict == v {
			n++
		}
	}
	for _, one := range c.Checks {
		if one.Verdict == v {
			n++
		}
	}
	return n
}

func changed(old, latest Figure, threshold float64) Change {
	p := benchmath.AssumeNothing.Compare(benchmath.NewSample(slices.Clone(old.Samples), &benchmath.DefaultThresholds), benchmath.NewSample(slices.Clone(latest.Samples), &benchmath.DefaultThresholds))
	c := Change{Old: old, New: latest, P: p.P}
	switch rose := latest.Value > old.Value; {
	case math.Abs(latest.Value-old.Value) <= threshold*max(math.Abs(old.Value), math.Abs(latest.Value)):
		c.Verdict = Same
	case c.few():
		c.Verdict = Changed
	case p.P > p.Alpha:
		c.Verdict = Same
	case latest.Better == Neither:
		c.Verdict = Changed
	case rose == (latest.Better == Higher):
		c.Verdict = Better
	default:
		c.Verdict = Worse
	}
	return c
}

// few reports whether there are too few samples for a verdict.
func (c Change) few() bool { return min(len(c.Old.Samples), len(c.New.Samples)) < enough }

// differences returns warnings about other differences between the runs.
func (c *Comparison) differences() []string {
	var notes []string
	for _, d := range []struct {
		what string
		of   func(*Document) string
	}{
		{"scenario", func(d *Document) string { return d.Scenario }},
		{"title", func(d *Document) string { return d.Title }},
		{"command", func(d *Document) string { return d.Command }},
		{"machine", func(d *Document) string {
			return fmt.Sprintf("%s/%s, %d CPUs %s", d.Machine.OS, d.Machine.Arch, d.Machine.CPUs, d.Machine.CPU)
		}},
		{"Go version", func(d *Document) string { return d.Machine.Go }},
	} {
		before, now := distinct(c.Old, d.of), distinct(c.New, d.of)
		if !slices.Equal(before, now) || len(before) > 1 {
			notes = append(notes, fmt.Sprintf("CAREFUL: the %s differs, %s before and %s now. This alone can change the figures.", d.what, strings.Join(before, " and "), strings.Join(now, " and ")))
		}
	}
	for _, d := range slices.Concat(c.Old, c.New) {
		if d.Interrupted != "" {
			notes = append(notes, fmt.Sprintf("CAREFUL: the run of %s was interrupted: its figures cover only its beginning.", d.Started.UTC().Format("2006-01-02 15:04:05 UTC")))
		}
	}
	return notes
}

// distinct returns the different values of the runs, quoted and in order.
func distinct(runs []*Document, of func(*Document) string) []string {
	var all []string
	for _, run := range runs {
		all = append(all, fmt.Sprintf("%q", of(run)))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A Side is one check in the runs of a side.
type Side struct {
	// Runs is the number of runs with the check, and Broken the number of those that failed
	// it or did not test it. Other runs do not make up for a broken one.
	Runs, Broken int
	// Seen and Wrong are the sums over all of them.
	Seen, Wrong int64
}

// in returns the check of that name in some runs.
func in(runs []*Document, name string) (s Side) {
	for _, run := range runs {
		for _, c := range run.Checks {
			if c.Name != name {
				continue
			}
			s.Runs, s.Seen, s.Wrong = s.Runs+1, s.Seen+c.Seen, s.Wrong+c.Wrong
			if !c.OK() {
				s.Broken++
			}
		}
	}
	return s
}

// tested reports whether the side tested the promise.
func (s Side) tested() bool { return s.Runs > 0 && (s.Seen > 0 || s.Broken > 0) }

// A Held is one check of both sides.
type Held struct {
	Name     string
	Old, New Side
	Verdict  Verdict
}

// heldChecks compares all checks of any run: those of the new runs first, then those that only old
// runs have, so that a removed check is noticed.
func heldChecks(olds, news []*Document) (all []Held) {
	known := map[string]bool{}
	for _, side := range [][]*Document{news, olds} {
		for _, run := range side {
			for _, c := range run.Checks {
				if !known[c.Name] {
					known[c.Name] = true
					h := Held{Name: c.Name, Old: in(olds, c.Name), New: in(news, c.Name)}
					h.Verdict = h.verdict()
					all = append(all, h)
				}
			}
		}
	}
	return all
}

// verdict compares a promise between the sides. It is worse if it is broken now, and no run
// shows that it was broken before.
func (h Held) verdict() Verdict {
	before, now := h.Old, h.New
	switch {
	case now.Broken > 0 && before.Broken == 0:
		return Worse
	case !before.tested() || !now.tested():
		return Untested
	case before.Broken == 0:
		return Same
	case now.Broken == 0:
		return Better
	}
	// Both are broken: compare the broken part of the tests.
	switch cmp.Compare(now.Wrong*max(before.Seen, 1), before.Wrong*max(now.Seen, 1)) {
	case 1:
		return Worse
	case -1:
		return Better
	}
	return Same
}

// Document returns the comparison as tables and notes.
func (c *Comparison) Document() *Document {
	d := &Document{Scenario: "compare", Title: c.title(), Notes: append(c.differences(), c.samples())}
	if len(c.Changes) > 0 {
		d.Tables = append(d.Tables, c.figures())
	}
	if len(c.Checks) > 0 {
		d.Tables = append(d.Tables, c.checks())
	}
	for _, only := range []struct {
		of    string
		names []string
	}{{"old", c.OnlyOld}, {"new", c.OnlyNew}} {
		if len(only.names) > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("Not compared, because not in all runs, but in %s ones: %s.", only.of, strings.Join(only.names, "; ")))
		}
	}
	if !c.Common() {
		d.Notes = append(d.Notes, "The runs have no figure and no check in common, so there is nothing to compare.")
	}
	return d
}

func (c *Comparison) title() string {
	title := fmt.Sprintf("%s: %d worse, %d better, %d the same", c.New[0].Scenario, c.count(Worse), c.count(Better), c.count(Same))
	if n := c.count(Untested); n > 0 {
		title += fmt.Sprintf(", %d not tested in one of them", n)
	}
	return title
}

// samples describes the samples of a figure.
func (c *Comparison) samples() string {
	if c.byRun() {
		return fmt.Sprintf("%d old and %d new runs. Each run is a sample, so the test covers the spread between runs.", len(c.Old), len(c.New))
	}
	return fmt.Sprintf("%d old and %d new runs. The samples are the repetitions in them. Runs of the same code can differ more: with at least %d runs per side, each run is a sample.", len(c.Old), len(c.New), enough)
}

// figures returns the changes as a table, worse ones first.
func (c *Comparison) figures() Table {
	t := Table{
		Title: "figures", Columns: []string{"figure", "old", "new", "new : old", "p", "verdict"},
		Note: fmt.Sprintf("p is from a Mann-Whitney U test. A figure is the same if p is above 0.05 or the change within %s %%. With fewer than %d samples it has no verdict but \"%s\".",
			Scale{Per: 1}.Number(100*c.Threshold), enough, Changed),
	}
	for _, one := range inOrder(c.Changes, func(c Change) Verdict { return c.Verdict }) {
		ratio, p := "–", "–"
		if one.Old.Value > 0 && one.New.Value > 0 {
			ratio = Value(one.New.Value/one.Old.Value, "ratio")
		}
		if !one.few() {
			p = fmt.Sprintf("%.3f", one.P)
		}
		t.Rows = append(t.Rows, []string{
			one.New.Name, Value(one.Old.Value, one.Old.Unit), Value(one.New.Value, one.New.Unit), ratio, p, string(one.Verdict),
		})
	}
	return t
}

// inOrder sorts by verdict, the most important ones first.
func inOrder[T any](all []T, verdict func(T) Verdict) []T {
	rank := func(v Verdict) int { return slices.Index([]Verdict{Worse, Untested, Better, Changed, Same}, v) }
	return slices.SortedStableFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(rank(verdict(a)), rank(verdict(b))) })
}

// checks returns the checks as a table, changed ones first.
func (c *Comparison) checks() Table {
	t := Table{Title: "checks", Columns: []string{"check", "seen before", "wrong before", "seen now", "wrong now", "verdict"}}
	for _, h := range inOrder(c.Checks, func(h Held) Verdict { return h.Verdict }) {
		row := []string{h.Name}
		for _, s := range []Side{h.Old, h.New} {
			if s.Runs == 0 {
				row = append(row, "–", "–")
				continue
			}
			row = append(row, Thousands(fmt.Sprint(s.Seen)), Thousands(fmt.Sprint(s.Wrong)))
		}
		t.Rows = append(t.Rows, append(row, h.words()))
	}
	if c.count(Untested) > 0 {
		t.Note = "Not tested: the runs of one side do not have the check (–), or no event in them concerned it."
	}
	return t
}

// words returns the verdict of a check, and which side did not test it.
func (h Held) words() string {
	switch {
	case h.Verdict == Worse && h.New.Wrong == 0:
		return string(Worse) + ": not tested"
	case h.Verdict != Untested:
		return string(h.Verdict)
	case h.Old.tested():
		return string(Untested) + " now"
	case h.New.tested():
		return string(Untested) + " before"
	}
	return string(Untested)
}
