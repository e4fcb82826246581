package dispatch_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// For any configuration, a shim decides from the document as the plan says, and a coarser
// document guards at least the same calls.
func TestShimsGuardTheSameCallsAsPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := gen.Cases(gen.Shape{Pools: stagePools, Conditions: stageConditions, Stages: true}).Draw(t, "case")
		c.Config.Fabric = "f"
		for i := range c.Config.Hooks {
			c.Config.Hooks[i].Needs = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{schema.NeedNative, schema.NeedHistory}), 0, 2, rapid.ID[string]).Draw(t, "needs")
		}
		s, err := dispatch.Compile(c.Config, compileCondition)
		if err != nil {
			t.Fatal(err)
		}
		exact := document(t, &c.Config, schema.MaxPolicy)
		r := routing(&c.Event)
		calls := map[guard.Call]bool{
			{Agent: r.Agent, Event: r.Event, Tool: r.Tool}:                 s.Plan(r.Agent, r.Event, r.Tool).Guarded,
			{Agent: r.Agent, Event: r.Event}:                               model.Guarded(c.Config, r.Agent, r.Event, ""),
			{Agent: schema.UnknownAgent, Event: r.Event, Tool: r.Tool}:     s.Guards(schema.UnknownAgent, r.Event, r.Tool),
			{Agent: "another agent", Event: r.Event, Tool: "another tool"}: s.Plan("another agent", r.Event, "another tool").Guarded,
		}
		if r.Tool == "" && r.Event.HasTool() {
			delete(calls, guard.Call{Agent: r.Agent, Event: r.Event}) // equal calls
		}
		coarser := document(t, &c.Config, rapid.SampledFrom([]int{0, 200, 400, 800}).Draw(t, "most"))
		for call, guarded := range calls {
			if h := exact.Guard(call); (h != nil) != guarded {
				t.Fatalf("%+v: the document says %v, the plan %t", call, h, guarded)
			}
			if guarded && coarser.Guard(call) == nil || exact.Native(call) != nil && coarser.Native(call) == nil ||
				exact.History(call) != nil && coarser.History(call) == nil {
				t.Fatalf("%+v: a coarser document leaves it out", call)
			}
		}
		call := guard.Call{Agent: r.Agent, Event: r.Event, Tool: r.Tool}
		if native := exact.Native(call) != nil; r.Tool != "" && native != needs(c.Config, &r, schema.NeedNative) {
			t.Fatalf("the document says that the payload is needed: %t", native)
		}
		if history := exact.History(call) != nil; r.Tool != "" && history != needs(c.Config, &r, schema.NeedHistory) {
			t.Fatalf("the document says that the conversation is needed: %t", history)
		}
	})
}

// document returns the policy of a configuration after encoding and decoding.
func document(t *rapid.T, cfg *schema.Config, most int) *guard.Rules {
	_, data, err := guard.DocumentUpTo(cfg, most)
	if err != nil {
		t.Fatal(err)
	}
	var p schema.Policy
	if err := schema.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	if p.Fabric != cfg.Fabric || p.ConfigVersion != cfg.Version {
		t.Fatalf("it is of %q, %d", p.Fabric, p.ConfigVersion)
	}
	rules, err := guard.Compile(p.Hooks, p.Overrides)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func needs(cfg schema.Config, r *schema.Routing, what string) bool {
	return slices.ContainsFunc(model.Resolve(cfg, r.Agent, r.Event, r.Tool), func(h schema.Hook) bool {
		return !h.Stage() && slices.Contains(h.Needs, what)
	})
}
