package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/stats"
)

// several reports whether there are more runs than one on some side.
func (c *Comparison) several() bool { return len(c.Old)+len(c.New) > 2 }

// together is what the runs of one side come to: the figures that all of them have,
// each run a sample.
func (c *Comparison) together(runs []*result.Document) *result.Document {
	all, seen := &result.Document{}, map[string]bool{}
	for _, run := range runs {
		for _, f := range run.Figures {
			if seen[f.Name] {
				continue
			}
			seen[f.Name] = true
			values := valuesOf(f, runs)
			if len(values) < len(runs) {
				c.Partly = append(c.Partly, f.Name)
				continue
			}
			f.Value, f.Low, f.High, f.Samples = stats.Mean(values), slices.Min(values), slices.Max(values), values
			all.Figures = append(all.Figures, f)
		}
	}
	return all
}

// valuesOf are the values of a figure in the runs that have it.
func valuesOf(f result.Figure, runs []*result.Document) (values []float64) {
	for _, run := range runs {
		i := slices.IndexFunc(run.Figures, func(other result.Figure) bool { return other.Name == f.Name && other.Unit == f.Unit })
		if i >= 0 {
			values = append(values, run.Figures[i].Value)
		}
	}
	return values
}

// distinct are the different things that the runs say of something.
func distinct(runs []*result.Document, of func(*result.Document) string) []string {
	var all []string
	for _, run := range runs {
		if said := of(run); !slices.Contains(all, said) {
			all = append(all, said)
		}
	}
	return all
}

// told are those things in words, the same ones always in the same.
func told(runs []*result.Document, of func(*result.Document) string) string {
	all := distinct(runs, of)
	slices.Sort(all)
	for i, said := range all {
		all[i] = fmt.Sprintf("%q", said)
	}
	return strings.Join(all, " and ")
}
