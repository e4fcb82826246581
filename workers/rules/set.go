package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	ahocorasick "github.com/BobuSumisu/aho-corasick"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/action"
	"github.com/hookfabric/hookfabric/schema/match"
)

// The ids of the answers that are not of a rule.
const (
	unparsedID = "unparsed"
	dynamicID  = "dynamic"
)

// A Set is a compiled set of rules. It is safe for concurrent use.
type Set struct {
	rules    []rule
	keywords *ahocorasick.Trie // nil: no rule has keywords
	// owners are the rules of each keyword, always those without keywords. Both are indexes of rules.
	owners [][]int
	always []int
	// unparsed and dynamic are the answers to calls that are not known; empty: none.
	unparsed, dynamic schema.RuleAction
	now               func() time.Time
}

// rule is one compiled rule.
type rule struct {
	*schema.Rule
	when     *cond.Expression // nil: no condition
	patterns []pattern
	except   []exception
}

// pattern is one regular expression on a field.
type pattern struct {
	field string
	re    *regexp.Regexp
}

// exception is an exception from one rule.
type exception struct {
	agents *match.Matcher
	end    time.Time // when it ends
}

// Compile compiles the rules of one hook.
func Compile(c *cond.Compiler, set *schema.RuleSet) (*Set, error) {
	s := &Set{unparsed: set.Unparsed, dynamic: set.Dynamic, now: time.Now}
	var keywords []string
	known := make(map[string]int)
	for i := range set.Rules {
		r, err := compile(c, &set.Rules[i], set.Exceptions)
		if err != nil {
			return nil, fmt.Errorf("the rule %q: %w", set.Rules[i].ID, err)
		}
		s.rules = append(s.rules, r)
		needed := r.keywords()
		if needed == nil {
			s.always = append(s.always, i)
		}
		for _, k := range needed {
			n, ok := known[k]
			if !ok {
				n, known[k] = len(keywords), len(keywords)
				keywords, s.owners = append(keywords, k), append(s.owners, nil)
			}
			s.owners[n] = append(s.owners[n], i)
		}
	}
	if len(keywords) > 0 {
		s.keywords = ahocorasick.NewTrieBuilder().AddStrings(keywords).Build()
	}
	return s, nil
}

func compile(c *cond.Compiler, from *schema.Rule, exceptions []schema.RuleException) (r rule, err error) {
	r.Rule = from
	if from.When == "" && len(from.Patterns) == 0 {
		return r, fmt.Errorf("it has neither a condition nor patterns; write one of them")
	}
	if from.When != "" {
		if r.when, err = c.Expression(from.When, cond.Truth); err != nil {
			return r, fmt.Errorf("its condition: %w", err)
		}
	}
	for _, p := range from.Patterns {
		for _, text := range p.Any {
			re, err := regexp.Compile(text)
			if err != nil {
				return r, fmt.Errorf("the pattern %q: %w", text, err)
			}
			r.patterns = append(r.patterns, pattern{p.Field, re})
		}
	}
	for _, x := range exceptions {
		if x.Rule != from.ID {
			continue
		}
		agents, err := match.Compile(x.Agents)
		if err != nil {
			return r, fmt.Errorf("the agents of its exception: %w", err)
		}
		last, err := time.Parse(time.DateOnly, x.Until)
		if err != nil {
			return r, fmt.Errorf("the date of its exception: %w", err)
		}
		r.except = append(r.except, exception{agents, last.AddDate(0, 0, 1)})
	}
	return r, nil
}

// keywords returns texts in lower case, of which an event that the rule matches has at least one; nil: none
// are known.
func (r *rule) keywords() (all []string) {
	for _, k := range r.Keywords {
		all = append(all, lower(k))
	}
	if all != nil || len(r.patterns) == 0 {
		return all
	}
	for _, p := range r.patterns {
		l := literals(p.re.String())
		if l == nil {
			return nil
		}
		all = append(all, l...)
	}
	return all
}

// matches reports whether the rule matches an event.
func (r *rule) matches(t *texts) (bool, error) {
	if len(r.patterns) > 0 && !slices.ContainsFunc(r.patterns, func(p pattern) bool { return p.re.MatchString(t.field(p.field)) }) {
		return false, nil
	}
	if r.when == nil {
		return true, nil
	}
	return r.when.Holds(t.view)
}

// excepted reports whether an agent need not follow the rule now.
func (r *rule) excepted(agent string, now time.Time) bool {
	return slices.ContainsFunc(r.except, func(x exception) bool { return now.Before(x.end) && x.agents.Match(agent) })
}

// Match returns the rules that match an event, in their order.
func (s *Set) Match(e *schema.Event) ([]*schema.Rule, error) {
	t := &texts{event: e, view: dispatch.ViewOf(e)}
	var matched []*schema.Rule
	for _, i := range s.candidates(t) {
		r := &s.rules[i]
		is, err := r.matches(t)
		if err != nil {
			return nil, fmt.Errorf("the rule %q: %w", r.ID, err)
		}
		if is && (len(r.except) == 0 || !r.excepted(e.AgentID, s.now())) {
			matched = append(matched, r.Rule)
		}
	}
	return append(matched, s.unknown(t)...), nil
}

// candidates returns the rules whose keywords an event has, in their order.
func (s *Set) candidates(t *texts) []int {
	if s.keywords == nil {
		return s.always
	}
	found := slices.Clone(s.always)
	seen := make([]bool, len(s.owners))
	s.keywords.Walk(t.all(), func(_, _, k int64) bool {
		if !seen[k] {
			seen[k] = true
			found = append(found, s.owners[k]...)
		}
		return true
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// unknown returns answers to a call whose facts are incomplete.
func (s *Set) unknown(t *texts) (answers []*schema.Rule) {
	if s.unparsed == "" && s.dynamic == "" {
		return nil
	}
	a := t.action()
	if s.unparsed != "" && a.Unparsed != "" {
		answers = append(answers, &schema.Rule{ID: unparsedID, Title: "a call that cannot be checked", Action: s.unparsed,
			Message: "It cannot be checked: " + a.Unparsed + ". Write it as simple commands."})
	}
	if s.dynamic == "" {
		return answers
	}
	if i := slices.IndexFunc(a.Commands, func(c action.Command) bool { return c.Dynamic }); i >= 0 {
		answers = append(answers, &schema.Rule{ID: dynamicID, Title: "a command that is known only when it runs", Action: s.dynamic,
			Message: fmt.Sprintf("What %q runs is known only when it runs. Write the command itself.", strings.ToValidUTF8(a.Commands[i].Name, ""))})
	}
	return answers
}
