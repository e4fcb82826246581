package builtin

import (
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func TestTerminalToolsMatchByTheirLastPart(t *testing.T) {
	usual := stage[gate](t, schema.RoundTimeoutPre, nil)
	own := stage[gate](t, schema.RoundTimeoutPre, map[string]any{"terminal_tools": []any{"submit", "mcp__x__end"}})
	for tool, want := range map[string][2]bool{
		"vote": {true, false}, "new_answer": {true, false}, "mcp__server__vote": {true, false},
		"mcp__massgen_workflow_tools__new_answer": {true, false}, "server.vote": {true, false}, "server/vote": {true, false},
		"server:vote": {true, false}, "MCP:new_answer": {true, false}, "mcp__s___vote": {true, false},
		"submit": {false, true}, "mcp__a__submit": {false, true}, "mcp__x__end": {false, true}, "end": {false, false},
		"Vote": {}, "downvote": {}, "vote_now": {}, "answer": {}, "Bash": {}, "": {}, "vote__": {}, "vote/": {}, "mcp__vote__read": {},
	} {
		if got := [2]bool{usual.Passes(tool), own.Passes(tool)}; got != want {
			t.Errorf("%q passes %v, want %v", tool, got, want)
		}
	}
}

func TestTextsOfRefusals(t *testing.T) {
	g := stage[gate](t, schema.RoundTimeoutPre, nil)
	r := schema.Round{Warned: true, Since: schema.Duration(130 * time.Second), Grace: schema.Duration(2 * time.Minute)}
	var reasons []string
	for _, denials := range []int{1, 2, 3, 9, 10} {
		r.Denials, r.Terminate = denials, denials == 10
		res := g.Refuse("Bash", &r)
		if res.Decision != schema.Deny {
			t.Errorf("the decision is %q", res.Decision)
		}
		reasons = append(reasons, res.Reason)
	}
	reasons = append(reasons, g.Refuse("Bash", nil).Reason)
	golden(t, "refusals", strings.Join(reasons, "\n\n"))
}
