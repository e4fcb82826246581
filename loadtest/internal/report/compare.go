package report

import (
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

// changed compares one figure.
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
