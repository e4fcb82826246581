package match

import (
	"slices"

	"github.com/gobwas/glob"
)

// A Matcher is a compiled pattern. Several goroutines may use it. The zero Matcher matches
// nothing; use [Compile].
type Matcher struct {
	// all means that the pattern is empty, or that an alternative is only stars.
	all bool
	// exact names are compared without the glob library.
	exact []string
	globs []*glob.Pattern
	// begins are the texts of the globs before their first wildcard.
	begins []string
}

// Match reports whether name, of a tool or an agent, matches the pattern.
func (m *Matcher) Match(name string) bool {
	return m.all || slices.Contains(m.exact, name) || slices.ContainsFunc(m.globs, func(g *glob.Pattern) bool { return g.Match(name) })
}

// All reports whether m matches every name.
func (m *Matcher) All() bool { return m.all }

// Exact returns the names that m matches, if they are a fixed list, so that a plan can index
// hooks by tool. It returns false if m contains a glob.
func (m *Matcher) Exact() (names []string, ok bool) {
	if m.all || len(m.globs) > 0 {
		return nil, false
	}
	return slices.Clone(m.exact), true
}
