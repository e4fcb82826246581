package packs_test

import (
	"slices"
	"testing"

	"github.com/hookfabric/hookfabric/builtin/packs"
	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/cmd/broker/policytest"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
	"github.com/hookfabric/hookfabric/workers/cel"
)

// TestShippedPacks runs the cases of every rule. Each rule must have cases of both kinds.
func TestShippedPacks(t *testing.T) {
	c, err := cond.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for name, text := range packs.All() {
		f, err := hooksyaml.ReadRules(name+".yaml", []byte(text), hooksyaml.Options{
			CheckCondition: func(expr string) error { _, err := cel.Check(c, cel.Deny, expr); return err },
		})
		if err != nil {
			t.Error(err)
			continue
		}
		for i := range f.Rules {
			r := &f.Rules[i]
			matches := slices.ContainsFunc(r.Cases, func(c hooksyaml.RuleCase) bool { return c.Want != "" })
			passes := slices.ContainsFunc(r.Cases, func(c hooksyaml.RuleCase) bool { return c.Want == "" })
			if !matches || !passes || r.Severity == "" {
				t.Errorf("the rule %s of %s lacks a severity, or cases that match and cases that pass", r.ID, name)
			}
			if other, ok := seen[r.ID]; ok {
				t.Errorf("the rule %s is in %s and in %s", r.ID, name, other)
			}
			seen[r.ID] = name
		}
		results, err := policytest.RunRules(c, name+".yaml", f)
		if err != nil {
			t.Error(err)
		}
		for i := range results {
			if x := &results[i]; !x.OK {
				t.Errorf("%s:%d: %s: got %s", x.File, x.Line, x.Name, x.Got[0])
			}
		}
		flipped(t, c, f)
		t.Logf("%s: %d rules, %d cases", name, len(f.Rules), len(results))
	}
}

// flipped changes the action of each rule. At least one of its cases must fail then.
func flipped(t *testing.T, c *cond.Compiler, f *hooksyaml.RuleFile) {
	t.Helper()
	for i := range f.Rules {
		one := hooksyaml.RuleFile{Rules: []hooksyaml.PackRule{f.Rules[i]}}
		r := &one.Rules[0]
		for _, to := range []schema.RuleAction{schema.RuleDeny, schema.RuleAsk, schema.RuleWarn} {
			if to == f.Rules[i].Action {
				continue
			}
			r.Action = to
			results, err := policytest.RunRules(c, "flipped", &one)
			if err != nil || !slices.ContainsFunc(results, func(x policytest.Result) bool { return !x.OK }) {
				t.Errorf("no case notices that the rule %s does %s: %v", r.ID, to, err)
			}
		}
	}
}
