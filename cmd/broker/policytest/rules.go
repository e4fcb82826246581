package policytest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
	"github.com/hookfabric/hookfabric/workers/rules"
)

// ruleFolder is the working folder of events in a rule's cases.
const ruleFolder = "/project"

// RunRules runs the cases of the rules in a file, which messages call name.
func RunRules(c *cond.Compiler, name string, f *hooksyaml.RuleFile) ([]Result, error) {
	set := schema.RuleSet{}
	for i := range f.Rules {
		set.Rules = append(set.Rules, f.Rules[i].Rule)
	}
	compiled, err := rules.Compile(c, &set)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var results []Result
	for i := range f.Rules {
		r := &f.Rules[i]
		for j := range r.Cases {
			x, err := runRule(compiled, r, &r.Cases[j])
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, r.Cases[j].Line, err)
			}
			x.File = name
			results = append(results, x)
		}
	}
	return results, nil
}

// runRule runs one case.
func runRule(set *rules.Set, r *hooksyaml.PackRule, from *hooksyaml.RuleCase) (Result, error) {
	e, err := ruleEvent(r, from)
	if err != nil {
		return Result{}, err
	}
	matched, err := set.Match(e)
	if err != nil {
		return Result{}, err
	}
	got := schema.RuleAction("pass")
	if slices.ContainsFunc(matched, func(m *schema.Rule) bool { return m.ID == r.ID }) {
		got = r.Action
	}
	want := cmp.Or(from.Want, "pass")
	return Result{
		Name: fmt.Sprintf("rule %s: %s: %s", r.ID, want, caseText(from)), Line: from.Line, OK: got == want, Want: []string{string(want)}, Got: []string{string(got)},
	}, nil
}

func caseText(c *hooksyaml.RuleCase) string {
	if c.Command != "" {
		return fmt.Sprintf("%q", c.Command)
	}
	return string(c.Event)
}

// ruleEvent returns the event of a case. By default it is the first event of the rule, in a folder of its own.
func ruleEvent(r *hooksyaml.PackRule, c *hooksyaml.RuleCase) (*schema.Event, error) {
	e := &schema.Event{HookType: r.Events[0], Runtime: "claude", Cwd: ruleFolder}
	if c.Command == "" {
		if err := schema.Unmarshal(c.Event, e); err != nil {
			return nil, err
		}
		if e.ToolName != "" && e.ToolKind == "" {
			e.ToolKind, _ = schema.ToolFacts(e.Runtime, e.ToolName, e.ToolInput)
		}
		return e, nil
	}
	input, err := schema.Marshal(map[string]string{"command": c.Command})
	e.ToolName, e.ToolKind, e.ToolInput = "Bash", schema.KindShell, input
	return e, err
}
