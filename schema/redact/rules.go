package redact

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema/match"
)

const (
	// anyDepth is the part of a rule that stands for any number of members, also none.
	anyDepth = "**"
	// maxRules and maxParts bound what has to be looked at.
	maxRules = 256
	maxParts = 32
	// leastEcho is the shortest text that is looked for elsewhere after it was found
	// at a place that a rule names: shorter ones stand in many words.
	leastEcho = 4
)

// Rules name places in a document at which there are secrets. The zero Rules name
// none. They are safe for many goroutines.
type Rules struct{ paths [][]part }

// A part of a rule is about one member.
type part struct {
	deep bool // any number of members
	name *match.Matcher
}

// Parse reads rules: the names of members with dots between them, from the outermost
// to the one with the secret, each a pattern of the one matcher ("tool_input.env.*").
// ** is any number of members ("**.authorization"); lists are gone through.
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
		r.paths = append(r.paths, path)
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
			return nil, fmt.Errorf("can not be read: %w", err)
		}
		path = append(path, part{name: m})
	}
	if path[len(path)-1].deep {
		return nil, errors.New("ends with **, which names no member")
	}
	return path, nil
}

// Empty reports whether r names no place.
func (r *Rules) Empty() bool { return r == nil || len(r.paths) == 0 }

// Clean takes out of doc what stands where r says, the same texts wherever else they
// stand in it, and then what looks like a secret. It returns those texts: they may
// stand in what is told beside doc, too.
func (r *Rules) Clean(doc map[string]any) (removed []string) {
	if !r.Empty() {
		for _, path := range r.paths {
			strike(doc, path, &removed)
		}
	}
	// The longest first, so that none is cut by a part of it.
	slices.SortFunc(removed, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	removed = slices.Compact(removed)
	without(doc, removed)
	cleaned(doc)
	return removed
}

// strike removes what stands at path in v.
func strike(v any, path []part, removed *[]string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			strike(item, path, removed)
		}
	case map[string]any:
		p := path[0]
		if p.deep {
			strike(v, path[1:], removed)
			for _, value := range v {
				strike(value, path, removed)
			}
			return
		}
		for name, value := range v {
			switch {
			case !p.name.Match(name):
			case len(path) > 1:
				strike(value, path[1:], removed)
			case value != Removed:
				texts(value, removed)
				v[name] = Removed
			}
		}
	}
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

// without is v without texts that were removed somewhere: an error repeats what was
// typed, and a tool what it was given.
func without(v any, removed []string) any {
	if len(removed) == 0 {
		return v
	}
	switch v := v.(type) {
	case string:
		return Without(v, removed)
	case []any:
		for i := range v {
			v[i] = without(v[i], removed)
		}
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(v)) {
			value := without(v[name], removed)
			if safe := Without(name, removed); safe != name {
				delete(v, name)
				name = safe
			}
			v[name] = value
		}
	}
	return v
}

// Without is s without texts that [Rules.Clean] removed.
func Without(s string, removed []string) string {
	for _, r := range removed {
		s = strings.ReplaceAll(s, r, Removed)
	}
	return s
}
