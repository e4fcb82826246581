package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

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
