package builtin

import (
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

func TestInjectTextInjectsTheTextOfItsOption(t *testing.T) {
	text := map[string]any{"text": "Write tests."}
	expect(t, schema.Injected("Write tests.", schema.ToolResult), answer(t, "inject_text", text, event(schema.PostToolUse)))
	text["strategy"] = "user_message"
	expect(t, schema.Injected("Write tests.", schema.UserMessage), answer(t, "inject_text", text, event(schema.PreToolUse)))
}
