package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/schema"
)

func names(hooks []schema.Hook) []string {
	var out []string
	for _, h := range hooks {
		out = append(out, h.Name)
	}
	return out
}

func TestOrderAndOverride(t *testing.T) {
	const p = schema.PreToolUse
	cfg := schema.Config{
		Hooks: []schema.Hook{
			{Name: "early", Event: p, Agent: "b"},
			{Name: "global-1", Event: p},
			{Name: "system", Event: p, System: true},
			{Name: "elsewhere", Event: schema.PostToolUse},
			{Name: "glob", Event: p, Agent: "team-*"},
			{Name: "exact", Event: p, Agent: "team-1"},
			{Name: "odd", Event: p, Agent: "[x]"},
			{Name: "global-2", Event: p},
		},
		Overrides: []schema.Override{{Agent: "team-?", Event: p}, {Agent: "b", Event: schema.PostToolUse}},
	}
	for _, c := range []struct {
		sentence, agent string
		want            []string
	}{
		{"global hooks come first, in registration order", "b", []string{"global-1", "system", "global-2", "early"}},
		{"an override drops the global hooks, not the system ones", "team-1", []string{"system", "glob", "exact"}},
		{"the glob of an override counts too", "team-2", []string{"system", "glob"}},
		{"and does not reach further", "team-10", []string{"global-1", "system", "global-2", "glob"}},
		{"an exact id need not fit itself as a glob", "[x]", []string{"global-1", "system", "global-2", "odd"}},
		{"as a glob it fits others", "x", []string{"global-1", "system", "global-2", "odd"}},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			if d := cmp.Diff(c.want, names(model.Resolve(cfg, c.agent, p, "Bash"))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestMatchers(t *testing.T) {
	for _, c := range []struct {
		matcher, tool string
		want          bool
	}{
		{"", "Bash", true},
		{"*", "", true},
		{"Bash", "Bash", true},
		{"Bash", "bash", false},
		{"Bash", "Bash2", false},
		{"Write|Edit", "Edit", true},
		{" Write | Edit ", "Write", true},
		{"Write||Edit", "", false},
		{"mcp__*", "mcp__a/b.c\nd", true},
		{"mcp__*", "MCP__x", false},
		{"*__*__vote", "mcp__x__vote", true},
		{"?ash", "Bash", true},
		{"?ash", "ash", false},
		{"?", "é", true},
		{"[BC]ash", "Cash", true},
		{"[A-C]ash", "Bash", true},
		{"[!A-C]ash", "Bash", false},
		{"[!A-C]ash", "Dash", true},
		{"[]]", "]", true},
		{"[!]]", "]", false},
		{"[a-]", "-", true},
		{"[Bash", "[Bash", true},
		{"[*]", "*", true},
		{"[*]", "x", false},
		{"Ba.h", "Bash", false},
	} {
		cfg := config(schema.Hook{Name: "h", Event: schema.ToolError, Matcher: c.matcher})
		if got := len(model.Resolve(cfg, "a", schema.ToolError, c.tool)) == 1; got != c.want {
			t.Errorf("matcher %q, tool %q: %t, want %t", c.matcher, c.tool, got, c.want)
		}
	}
	cfg := config(schema.Hook{Name: "h", Event: schema.QueryEnd, Matcher: "Bash"})
	if len(model.Resolve(cfg, "a", schema.QueryEnd, "")) != 1 {
		t.Error("where an event has no tool, a matcher does not count")
	}
}
