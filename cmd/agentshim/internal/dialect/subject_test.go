package dialect_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// The subject of a guarded event, under the names of the runtimes.
var subjects = []string{"tool_name", "toolName", "tool", "tool_input", "toolInput", "toolArgs", "args", "toolCall", "command", "file_path", "prompt"}

// If the tool call or the prompt is missing, a hook has nothing to judge: the payload is malformed, and a guarded
// event does not pass.
func TestAGuardedEventWithoutItsSubjectIsMalformed(t *testing.T) {
	tried := map[string]bool{}
	for _, x := range exchanges(t) {
		d, in := runtimeOf(t, x.runtime), x.input(t)
		c, err := d.Decode(in)
		if err != nil || c.Moment.Can[dialect.Deny] == dialect.Impossible || c.Event.HookType != schema.PreToolUse && c.Event.HookType != schema.UserPromptSubmit {
			continue
		}
		whole := members(in.Payload)
		for _, subject := range subjects {
			if whole[subject] == nil || c.Moment.Name == "beforeMCPExecution" && subject == "command" {
				continue // there, the command is the one that starts the server
			}
			for what, value := range map[string]jsontext.Value{"without": nil, "with null for": jsontext.Value("null")} {
				rest := members(in.Payload)
				if delete(rest, subject); value != nil {
					rest[subject] = value
				}
				payload, err := schema.Marshal(rest)
				if err != nil {
					t.Fatal(err)
				}
				in.Payload = payload
				c, err := d.Decode(in)
				if err == nil {
					t.Errorf("%s %s its %s is no error", x.name(), what, subject)
				}
				c.Faulty = true
				withstands(t, x.runtime, d, in)
				tried[x.runtime+" "+string(c.Event.HookType)] = true
			}
		}
	}
	_, err := runtimeOf(t, "generic").Decode(dialect.Input{Payload: []byte(`{"hook_type":"PreToolUse","tool_input":{"command":"ls"}}`)})
	if err == nil {
		t.Error("a PreToolUse without the tool's name is no error")
	}
	if len(tried) < 13 {
		t.Errorf("only %d kinds of events were tried: %v", len(tried), tried)
	}
}
