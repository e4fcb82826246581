package redact

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema/match"
)

const (
	// anyDepth is the part of a rule that matches any number of members, including none.
	anyDepth = "**"
	// maxRules and maxParts limit the rules.
	maxRules = 256
	maxParts = 32
)

// Rules names places in a document that hold secrets. The zero Rules names no place. Several
// goroutines may use it.
type Rules struct {
	parts []part // of all rules, one after the other
	begin []int  // the first part of each rule
}

// A part of a rule matches one member.
type part struct {
	deep bool // any number of members
	name *match.Matcher
	last bool // of its rule
}

// Parse reads rules such as "tool_input.env.*": member names from the outermost to the secret
// one, separated by dots. Each name is a pattern of package match. ** matches any number of
// members, as in "**.authorization". Rules pass through lists.
func Parse(rules []string) (*Rules, error) {
	r := new(Rules)
	if len(rules) > maxRules {
		return nil, fmt.Errorf("there are %d rules; at most %d are looked at", len(rules), maxRules)
	}
	var errs []error
	for _, rule := range rules {
		path, err := parse(rule)
		if err != nil {
			errs = append(errs, fmt.Errorf("the rule %.80q %w; write members with dots between them, such as tool_input.env.* or **.authorization", rule, err))
			continue
		}
		path[len(path)-1].last = true
		r.begin, r.parts = append(r.begin, len(r.parts)), append(r.parts, path...)
	}
	return r, errors.Join(errs...)
}

func parse(rule string) (path []part, err error) {
	names := strings.Split(rule, ".")
	if len(names) > maxParts {
		return nil, fmt.Errorf("has %d parts, of which at most %d are looked at", len(names), maxParts)
	}
	for _, name := range names {
		switch strings.TrimSpace(name) {
		case "":
			return nil, errors.New("has an empty part")
		case anyDepth:
			path = append(path, part{deep: true})
			continue
		}
		m, err := match.Compile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot be read: %w", err)
		}
		path = append(path, part{name: m})
	}
	if path[len(path)-1].deep {
		return nil, errors.New("ends with **, which names no member")
	}
	return path, nil
}

// Empty reports whether r names no place.
func (r *Rules) Empty() bool { return r == nil || len(r.begin) == 0 }

// Clean removes from doc the values that r names, the same texts elsewhere in doc, and then
// everything that looks like a secret. It returns the texts, because they may also appear in
// text beside doc. If there are too many texts to search for, it removes the whole content of
// doc. Its work is proportional to the size of doc.
func (r *Rules) Clean(doc map[string]any) *Echoes {
	var removed []string
	if !r.Empty() {
		r.strike(doc, r.begin, &removed)
	}
	echoes := newEchoes(removed)
	if echoes != nil && echoes.all {
		for name := range doc {
			doc[name] = Removed
		}
		return echoes
	}
	without(doc, echoes)
	cleaned(doc)
	return echoes
}

// strike removes the values in v that rules name. at has the next part of each rule that
// applies here.
func (r *Rules) strike(v any, at []int, removed *[]string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			r.strike(item, at, removed)
		}
	case map[string]any:
		at = r.opened(at)
		var next []int
		for name, value := range v {
			hit := false
			next = next[:0]
			for _, k := range at {
				switch p := r.parts[k]; {
				case p.deep:
					next = append(next, k)
				case !p.name.Match(name):
				case p.last:
					hit = true
				default:
					next = append(next, k+1)
				}
			}
			switch {
			case hit && value != Removed:
				texts(value, removed)
				v[name] = Removed
			case !hit && len(next) > 0 && holds(value):
				r.strike(value, slices.Compact(slices.Sorted(slices.Values(next))), removed)
			}
		}
	}
}

// opened returns at with the parts after each **, which also matches no member.
func (r *Rules) opened(at []int) []int {
	if !slices.ContainsFunc(at, func(k int) bool { return r.parts[k].deep }) {
		return at
	}
	var all []int
	for _, k := range at {
		for all = append(all, k); r.parts[k].deep; k++ { // it is never the last one
			all = append(all, k+1)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// holds reports whether v is a list or an object.
func holds(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// texts collects the texts in v.
func texts(v any, all *[]string) {
	switch v := v.(type) {
	case string:
		if len(v) >= leastEcho && v != Removed {
			*all = append(*all, v)
		}
	case []any:
		for _, item := range v {
			texts(item, all)
		}
	case map[string]any:
		for _, value := range v {
			texts(value, all)
		}
	}
}

// without returns v without texts that were removed elsewhere, because errors and tools
// repeat their input.
func without(v any, removed *Echoes) any {
	if removed == nil {
		return v
	}
	switch v := v.(type) {
	case string:
		return removed.Without(v)
	case []any:
		for i := range v {
			v[i] = without(v[i], removed)
		}
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(v)) {
			value := without(v[name], removed)
			if safe := removed.Without(name); safe != name {
				delete(v, name)
				name = safe
			}
			v[name] = value
		}
	}
	return v
}
