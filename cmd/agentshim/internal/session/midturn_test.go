package session

import (
	"bytes"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// Only an event of a runtime that cannot restart a turn is marked as within a turn.
func TestAMomentInTheMidstOfATurnSaysSo(t *testing.T) {
	const claude, gemini = `{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Bash","tool_input":{}}`,
		`{"hook_event_name":"AfterTool","session_id":"s","tool_name":"read_file","tool_input":{}}`
	for name, c := range map[string]struct {
		runtime, payload string
		want             bool
	}{
		"claude after a tool":           {"claude", claude, true},
		"codex after a tool":            {"codex", claude, true},
		"gemini after a tool":           {"gemini", gemini, true},
		"gemini before its model":       {"gemini", `{"hook_event_name":"BeforeModel","session_id":"s","llm_request":{}}`, true},
		"claude at the end of its turn": {"claude", `{"hook_event_name":"Stop","session_id":"s"}`, false},
		"claude at a prompt":            {"claude", `{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"go"}`, false},
		"a loop after a tool":           {"generic", `{"hook_type":"PostToolUse","tool_name":"Bash"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := dialect.For(c.runtime)
			if err != nil {
				t.Fatal(err)
			}
			a := &asked{v: schema.Verdict{Decision: schema.Continue}}
			x := &Exchange{Settings: Settings{Runtime: c.runtime, Dialect: d}, Asker: a, Stderr: new(bytes.Buffer)}
			x.Run(t.Context(), []byte(c.payload), nil)
			if len(a.all) != 1 || a.all[0].Event.MidTurn != c.want {
				t.Errorf("%+v", a.all)
			}
		})
	}
}
