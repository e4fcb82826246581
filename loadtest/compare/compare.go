package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/stats"
)

// A Verdict says what became of a figure.
type Verdict string

// Every figure and check gets one of them. Changed is for figures that are not judged,
// Untested for checks that one side, or both, did not put to the test.
const (
	Same     Verdict = "same"
	Better   Verdict = "better"
	Worse    Verdict = "worse"
	Changed  Verdict = "changed"
	Untested Verdict = "not tested"
)

// A Change is one figure of both sides.
type Change struct {
	Old, New result.Figure
	// Runs: the samples are the figures of several runs, and not of stretches of one.
	Runs bool
	// Relative: Estimate is a ratio, new to old. Else some value is 0 or less, and
	// it is a difference, new less old.
	Relative bool
	Estimate stats.Estimate
	Verdict  Verdict
}

// A Comparison is all that can be said of some runs and of others.
type Comparison struct {
	// Old and New are the runs, at least one each.
	Old, New []*result.Document
	Changes  []Change
	// Checks are those of either side.
	Checks []Held
	// OnlyOld and OnlyNew name the figures that the runs of just one side have.
	OnlyOld, OnlyNew []string
	// Partly names the figures that some runs of a side have and others lack.
	Partly []string
	// Threshold is the part by which a figure must have changed to matter.
	Threshold float64
}

// Compare holds the new runs against the old ones, of which there must be one each at
// least. Changes up to threshold, a part of the figure (0.03 is 3 %), do not matter.
// How sure a change is says the spread from run to run; if there is one run on each
// side, the spread within them.
func Compare(olds, news []*result.Document, threshold float64) *Comparison {
	c := &Comparison{Old: olds, New: news, Threshold: threshold}
	old, new := olds[0], news[0]
	if c.several() {
		old, new = c.together(olds), c.together(news)
	}
	figures := map[string]result.Figure{}
	for _, f := range old.Figures {
		figures[f.Name] = f
	}
	for _, f := range new.Figures {
		before, ok := figures[f.Name]
		if !ok || before.Unit != f.Unit {
			c.OnlyNew = append(c.OnlyNew, f.Name)
			continue
		}
		delete(figures, f.Name)
		c.Changes = append(c.Changes, changed(Change{Old: before, New: f, Runs: c.several()}, threshold))
	}
	for _, f := range old.Figures {
		if _, left := figures[f.Name]; left {
			c.OnlyOld = append(c.OnlyOld, f.Name)
		}
	}
	c.Checks = held(olds, news)
	return c
}

// Common reports whether the sides have anything in common: else there was nothing to compare.
func (c *Comparison) Common() bool {
	return len(c.Changes) > 0 || slices.ContainsFunc(c.Checks, func(h Held) bool { return h.Old.Runs > 0 && h.New.Runs > 0 })
}

// OK reports whether nothing got worse.
func (c *Comparison) OK() bool { return c.count(Worse) == 0 }

// count says how many figures and checks have the verdict.
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
func changed(c Change, threshold float64) Change {
	old, new := c.Old, c.New
	c.Relative = positive(old) && positive(new)
	c.Estimate = c.estimate()
	same := c.Estimate.Low <= 0 && 0 <= c.Estimate.High ||
		math.Abs(c.Estimate.Median) <= threshold*max(math.Abs(old.Value), math.Abs(new.Value))
	rose := c.Estimate.Median > 0
	if c.Relative {
		// On the logarithm, so that a change and its reverse are as large.
		same = c.Estimate.Low <= 1 && 1 <= c.Estimate.High || math.Abs(math.Log(c.Estimate.Median)) <= math.Log1p(threshold)
		rose = c.Estimate.Median > 1
	}
	switch {
	case same:
		c.Verdict = Same
	case new.Better == result.Neither, c.bare(): // nobody knows how much it differs by itself
		c.Verdict = Changed
	case rose == (new.Better == result.Higher):
		c.Verdict = Better
	default:
		c.Verdict = Worse
	}
	return c
}

// sampled reports whether a figure has samples enough to draw from.
func sampled(f result.Figure) bool { return len(f.Samples) >= 3 }

// estimate is how much the figure changed, and how sure that is: from several runs,
// from the samples of one, or, where it kept too few, from the ends of its interval.
func (c Change) estimate() stats.Estimate {
	old, new := c.Old, c.New
	switch enough := sampled(old) && sampled(new); {
	case c.Runs && c.Relative:
		return stats.RatioOfRuns(new.Samples, old.Samples)
	case c.Runs:
		return stats.OfRuns(new.Samples, old.Samples)
	case enough && c.Relative:
		return stats.Ratio(new.Samples, old.Samples)
	case enough:
		return stats.Difference(new.Samples, old.Samples)
	case c.Relative:
		return stats.Estimate{Median: new.Value / old.Value, Low: new.Low / old.High, High: new.High / old.Low}
	default:
		return stats.Estimate{Median: new.Value - old.Value, Low: new.Low - old.High, High: new.High - old.Low}
	}
}

// positive reports whether ratios to the figure mean something.
func positive(f result.Figure) bool {
	for _, v := range append([]float64{f.Low, f.Value, f.High}, f.Samples...) {
		if v <= 0 {
			return false
		}
	}
	return true
}

// bare reports whether nothing says how sure the change is.
func (c Change) bare() bool {
	return !c.Runs && !(sampled(c.Old) && sampled(c.New)) && c.Old.Low == c.Old.High && c.New.Low == c.New.High
}

// differences says in sentences what else differs between the runs, and makes
// figures differ that the code did not change.
func (c *Comparison) differences() []string {
	var notes []string
	for _, d := range []struct {
		what string
		of   func(*result.Document) string
	}{
		{"scenario", func(d *result.Document) string { return d.Scenario }},
		{"title", func(d *result.Document) string { return d.Title }},
		{"command", func(d *result.Document) string { return d.Command }},
		{"machine", where},
		{"Go version", func(d *result.Document) string { return d.Machine.Go }},
	} {
		before, now := told(c.Old, d.of), told(c.New, d.of)
		if before != now || len(distinct(c.Old, d.of)) > 1 {
			notes = append(notes, fmt.Sprintf("CAREFUL: the %s differs, %s before and %s now. This alone can change the figures.", d.what, before, now))
		}
	}
	for _, d := range slices.Concat(c.Old, c.New) {
		if d.Interrupted != "" {
			notes = append(notes, fmt.Sprintf("CAREFUL: the run of %s was interrupted: its figures cover only its beginning.", d.Started.UTC().Format("2006-01-02 15:04:05 UTC")))
		}
	}
	return notes
}

func where(d *result.Document) string {
	return fmt.Sprintf("%s/%s, %d CPUs %s", d.Machine.OS, d.Machine.Arch, d.Machine.CPUs, d.Machine.CPU)
}
