package match

import (
	"slices"

	"github.com/gobwas/glob"
)

// An Index finds those of many patterns that match a name. It looks up exact names in a map, so
// that it tries only the globs one by one. The zero Index is empty. Several goroutines may call
// Find after the last Add.
type Index struct {
	all   []int
	exact map[string][]int
	// globs are grouped by their text before the first wildcard, and sizes are the
	// distinct lengths of these texts, of which thousands of patterns have few.
	globs map[string][]numbered
	sizes []int
}

// numbered is a glob with its number.
type numbered struct {
	of   int
	glob *glob.Pattern
}

// Add adds a pattern under the number of.
func (x *Index) Add(of int, m *Matcher) {
	if m.all {
		x.all = append(x.all, of)
		return
	}
	if x.exact == nil {
		x.exact, x.globs = make(map[string][]int), make(map[string][]numbered)
	}
	for _, name := range m.exact {
		x.exact[name] = append(x.exact[name], of)
	}
	for i, g := range m.globs {
		begin := m.begins[i]
		x.globs[begin] = append(x.globs[begin], numbered{of, g})
		if at, known := slices.BinarySearch(x.sizes, len(begin)); !known {
			x.sizes = slices.Insert(x.sizes, at, len(begin))
		}
	}
}

// Find returns the numbers of the patterns that match name, in increasing order.
func (x *Index) Find(name string) []int {
	found := slices.Concat(x.all, x.exact[name])
	for _, n := range x.sizes {
		if n > len(name) {
			break
		}
		for _, g := range x.globs[name[:n]] {
			if g.glob.Match(name) {
				found = append(found, g.of)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
