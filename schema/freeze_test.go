package schema_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

func TestTextOfAFreezesRefusal(t *testing.T) {
	z := frozen()[0]
	got := z.Refusal("Bash", []string{"vote", "new_answer"})
	for _, part := range []string{"`Bash`", `agents "scout-*"`, "ops@console", "2026-11-21T03:00:00Z", "wrong deployment", "broker thaw --agent 'scout-*'", "vote, new_answer"} {
		if !strings.Contains(got, part) {
			t.Errorf("it does not say %q: %s", part, got)
		}
	}
	all := schema.Freeze{Agents: schema.AllAgents}
	if got := all.Refusal("", nil); !strings.Contains(got, "all agents") || !strings.Contains(got, "broker thaw --all") || strings.Contains(got, "``") {
		t.Error(got)
	}
}

func TestTerminalToolsMatchByTheirLastPart(t *testing.T) {
	for tool, want := range map[string]bool{
		"vote": true, "mcp__workflow__vote": true, "server.vote": true, "server/vote": true, "server:vote": true,
		"Vote": false, "vote2": false, "mcp__vote__run": false, "": false, "own__tool": true,
	} {
		if got := schema.IsTerminal(tool, []string{"vote", "own__tool"}); got != want {
			t.Errorf("%q: %v", tool, got)
		}
	}
}
