package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

func freezesOf(t *testing.T, patterns ...string) *guard.Freezes {
	t.Helper()
	var all []schema.Freeze
	for _, p := range patterns {
		all = append(all, schema.Freeze{Agents: p})
	}
	f, err := guard.CompileFreezes(all)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAFreezeRefusesAllButTerminalTools(t *testing.T) {
	terminal := []string{"vote"}
	for name, c := range map[string]struct {
		frozen []string
		call   guard.Call
		by     string
	}{
		"a tool of an agent that a pattern means": {[]string{"other", "scout-*"}, guard.Call{Agent: "scout-1", Event: schema.PreToolUse, Tool: "Bash"}, "scout-*"},
		"of several the first counts":             {[]string{"scout-?", "*"}, guard.Call{Agent: "scout-1", Event: schema.PreToolUse, Tool: "Bash"}, "scout-?"},
		"alternatives":                            {[]string{"a|b"}, guard.Call{Agent: "b", Event: schema.PreToolUse, Tool: "Bash"}, "a|b"},
		"another agent":                           {[]string{"scout-*"}, guard.Call{Agent: "solver", Event: schema.PreToolUse, Tool: "Bash"}, ""},
		"names are case-sensitive":                {[]string{"Scout"}, guard.Call{Agent: "scout", Event: schema.PreToolUse, Tool: "Bash"}, ""},
		"a terminal tool":                         {[]string{"*"}, guard.Call{Agent: "a", Event: schema.PreToolUse, Tool: "vote"}, ""},
		"a terminal tool of some server":          {[]string{"*"}, guard.Call{Agent: "a", Event: schema.PreToolUse, Tool: "mcp__workflow__vote"}, ""},
		"a tool that only begins like a terminal": {[]string{"*"}, guard.Call{Agent: "a", Event: schema.PreToolUse, Tool: "vote_all"}, "*"},
		"a tool whose server is called like one":  {[]string{"*"}, guard.Call{Agent: "a", Event: schema.PreToolUse, Tool: "mcp__vote__run"}, "*"},
		"an unknown tool":                         {[]string{"*"}, guard.Call{Agent: "a", Event: schema.PreToolUse}, "*"},
		"an unknown agent may be any agent":       {[]string{"scout"}, guard.Call{Agent: schema.UnknownAgent, Event: schema.PreToolUse, Tool: "Bash"}, "scout"},
		"another event":                           {[]string{"*"}, guard.Call{Agent: "a", Event: schema.BeforeLLMCall}, ""},
		"what has happened":                       {[]string{"*"}, guard.Call{Agent: "a", Event: schema.PostToolUse, Tool: "Bash"}, ""},
		"no agent is frozen":                      {nil, guard.Call{Agent: "a", Event: schema.PreToolUse, Tool: "Bash"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if z := freezesOf(t, c.frozen...).Refuses(c.call, terminal); z != nil {
				got = z.Agents
			}
			if got != c.by {
				t.Errorf("refused by %q, want %q", got, c.by)
			}
		})
	}
}

func TestAFreezeWithAnInvalidPatternIsAnError(t *testing.T) {
	if _, err := guard.CompileFreezes([]schema.Freeze{{Agents: "["}}); err == nil || !strings.Contains(err.Error(), `"["`) {
		t.Errorf("%v", err)
	}
}

// All permitted freezes fit into a policy, with any number of hooks.
func TestFreezesComeFirstInAPolicy(t *testing.T) {
	cfg := schema.Config{Fabric: "f", Version: 7}
	for i := range 5000 {
		cfg.Hooks = append(cfg.Hooks, schema.Hook{Name: fmt.Sprint("hook-", i), Event: schema.PreToolUse, Agent: fmt.Sprint("agent-", i), FailClosed: true})
	}
	z := guard.Frozen{Version: 9, Terminal: []string{"vote"}}
	for i := range schema.MaxFreezes {
		z.Freezes = append(z.Freezes, schema.Freeze{Agents: fmt.Sprintf("frozen-%03d-%s", i, strings.Repeat("x", 60))})
	}
	p, data, err := guard.DocumentFrozen(&cfg, z)
	if err != nil || len(data) > schema.MaxPolicy || !p.Coarse {
		t.Fatalf("%d bytes, coarse %v, %v", len(data), p.Coarse, err)
	}
	signed := signer(t, 1).Sign(data)
	read, err := guard.Open(&signed, nil)
	if err != nil || len(read.Freezes) != schema.MaxFreezes || read.FreezeVersion != 9 || len(read.Terminal) != 1 || read.ConfigVersion != 7 {
		t.Errorf("%d freezes, %v", len(read.Freezes), err)
	}
	if p, _, _ := guard.DocumentFrozen(&cfg, guard.Frozen{Version: 10, Terminal: []string{"vote"}}); p.FreezeVersion != 10 || p.Terminal != nil {
		t.Errorf("when no agent is frozen any more: %+v", p.Terminal)
	}
}
