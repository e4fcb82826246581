package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
)

// Document is the comparison as something that can be printed and shown.
func (c *Comparison) Document() *result.Document {
	d := &result.Document{Scenario: "compare", Title: c.title(), Notes: append(c.differences(), c.spread())}
	if len(c.Changes) > 0 {
		d.Tables = append(d.Tables, c.figures())
	}
	if len(c.Checks) > 0 {
		d.Tables = append(d.Tables, c.checks())
	}
	bare := 0
	for _, one := range c.Changes {
		if one.bare() {
			bare++
		}
	}
	if bare > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d figures were measured once per run. Their changes have no interval, so they count as neither better nor worse.", bare))
	}
	for _, only := range []struct {
		of    string
		names []string
	}{{"the old run", c.OnlyOld}, {"the new run", c.OnlyNew}, {"some runs of a side", c.Partly}} {
		if len(only.names) > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("Not compared, because found only in %s: %s.", only.of, strings.Join(only.names, "; ")))
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

// spread says what the intervals are made of.
func (c *Comparison) spread() string {
	if c.several() {
		return fmt.Sprintf("%d old and %d new runs: the intervals cover the spread between runs (Student's t, one spread for both sides). A figure is the mean of its runs, or the geometric mean if all are above 0.", len(c.Old), len(c.New))
	}
	return "One run per side: the intervals cover the spread within a run, but not the spread between runs. " +
		"Runs of the same code can differ more. To include that, name several runs: compare OLD1 OLD2 : NEW1 NEW2."
}

// figures are the changes as a table, those first that got worse.
func (c *Comparison) figures() result.Table {
	t := result.Table{
		Title: "figures", Columns: []string{"figure", "old", "new", "change", "95 % interval", "its width", "verdict"},
		Note: fmt.Sprintf("The change is the new value ÷ the old value. A figure is the same if the interval contains 1 or the change is within %s %%. "+
			"If the interval is wide, repeat the runs.", units.Scale{Per: 1}.Number(100*c.Threshold)),
	}
	for _, one := range inOrder(c.Changes, func(c Change) Verdict { return c.Verdict }) {
		change, interval, width := one.words()
		t.Rows = append(t.Rows, []string{
			one.New.Name, units.Value(one.Old.Value, one.Old.Unit), units.Value(one.New.Value, one.New.Unit), change, interval, width, string(one.Verdict),
		})
	}
	return t
}

// inOrder are all of them, those first that a reader must see.
func inOrder[T any](all []T, verdict func(T) Verdict) []T {
	rank := func(v Verdict) int { return slices.Index([]Verdict{Worse, Untested, Better, Changed, Same}, v) }
	return slices.SortedStableFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(rank(verdict(a)), rank(verdict(b))) })
}

// words are the change, its interval and the interval's width.
func (c Change) words() (change, interval, width string) {
	e := c.Estimate
	if c.Relative {
		s := units.For("ratio", 1)
		return s.Value(e.Median), fmt.Sprintf("[%s %s]", s.Number(e.Low), s.Number(e.High)), fmt.Sprintf("%.1f %%", 100*(e.High-e.Low))
	}
	s := units.For(c.New.Unit, max(-e.Low, e.High))
	sign := ""
	if e.Median > 0 {
		sign = "+"
	}
	return sign + s.Value(e.Median), fmt.Sprintf("[%s %s]", s.Number(e.Low), s.Number(e.High)), s.Value(e.High - e.Low)
}

// checks are the promises as a table, those first that are not as they were.
func (c *Comparison) checks() result.Table {
	t := result.Table{Title: "checks", Columns: []string{"check", "seen before", "wrong before", "seen now", "wrong now", "verdict"}}
	for _, h := range inOrder(c.Checks, func(h Held) Verdict { return h.Verdict }) {
		row := []string{h.Name}
		for _, s := range []Side{h.Old, h.New} {
			if s.Runs == 0 {
				row = append(row, "–", "–")
				continue
			}
			row = append(row, units.Thousands(fmt.Sprint(s.Seen)), units.Thousands(fmt.Sprint(s.Wrong)))
		}
		t.Rows = append(t.Rows, append(row, h.words()))
	}
	if c.count(Untested) > 0 {
		t.Note = "Not tested: the runs of one side do not have the check (–), or no event in them concerned it."
	}
	return t
}

// words are the verdict on a check, and where nothing is known of it.
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
