package dispatch

import (
	"fmt"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// Clients choose the names of agents and tools, which must not fill the memory.
func TestThePlansOfAScopeAreLimited(t *testing.T) {
	s, err := Compile(schema.Config{Version: 1, Hooks: []schema.Hook{
		{Name: "a", Event: schema.PreToolUse, Pool: "p"}, {Name: "b", Event: schema.PreToolUse, Pool: "p", Agent: "own-*"},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	most, agents := 0, 0
	for i := range 3 * maxPlans {
		s.Plan("own-1", schema.PreToolUse, fmt.Sprint("tool-", i))
		most = max(most, len(s.scope("own-1").plans))
	}
	for i := range 2*maxAgents + 1 {
		s.scope(fmt.Sprint("agent-", i))
		agents = max(agents, len(s.agents))
	}
	if most > maxPlans || agents > maxAgents || len(s.scopes) > 2 {
		t.Errorf("%d plans, %d agents, %d scopes", most, agents, len(s.scopes))
	}
	if got := s.Plan("own-1", schema.PreToolUse, "tool-0").String(); got != "p[0 1]" {
		t.Errorf("then the plan is %s", got)
	}
}

// Every agent of the file matches another set of patterns.
func TestTheScopesOfASnapshotAreLimited(t *testing.T) {
	cfg := schema.Config{Version: 1}
	for i := range maxPlans + 10 {
		cfg.Overrides = append(cfg.Overrides, schema.Override{Agent: fmt.Sprint("a", i), Event: schema.PreToolUse})
	}
	s, err := Compile(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxPlans + 10 {
		s.Plan(fmt.Sprint("a", i), schema.PreToolUse, "Bash")
	}
	if len(s.scopes) > maxPlans {
		t.Errorf("%d scopes", len(s.scopes))
	}
}

// With a scope for every agent, the plans of all scopes together are limited.
func TestThePlansOfAllScopesAreLimited(t *testing.T) {
	cfg := schema.Config{Version: 1}
	const agents = 64
	for i := range agents {
		cfg.Hooks = append(cfg.Hooks, schema.Hook{Name: fmt.Sprint(i), Event: schema.PreToolUse, Pool: "p", Agent: fmt.Sprint("a", i)})
	}
	s, err := Compile(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	forgotten := 0
	for i := range agents * (maxPlans - 1) {
		if got := s.Plan(fmt.Sprint("a", i%agents), schema.PreToolUse, fmt.Sprint("tool-", i)).String(); got != fmt.Sprintf("p[%d]", i%agents) {
			t.Fatalf("the plan of agent %d is %s", i%agents, got)
		}
		if s.plans.Load() == 0 {
			forgotten++
		}
	}
	kept := 0
	for _, sc := range s.scopes {
		kept += len(sc.plans)
	}
	if kept > maxAllPlans || int64(kept) != s.plans.Load() || forgotten == 0 {
		t.Errorf("%d plans are cached, %d are counted; the caches were emptied %d times", kept, s.plans.Load(), forgotten)
	}
}
