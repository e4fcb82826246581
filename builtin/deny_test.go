package builtin

import (
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

func TestDenyUsesTheRefusalOfEachEvent(t *testing.T) {
	for e, want := range map[schema.EventType]schema.Decision{
		schema.UserPromptSubmit: schema.Deny, schema.PreToolUse: schema.Deny, schema.PostToolUse: schema.Deny, schema.ToolError: schema.Deny,
		schema.BeforeLLMCall: schema.Fail, schema.AfterLLMCall: schema.Fail, schema.BeforeFinalResponse: schema.Fail,
	} {
		got := answer(t, "deny", map[string]any{"reason": "frozen until Monday"}, event(e))
		expect(t, schema.Result{Decision: want, Reason: "frozen until Monday"}, got)
		if !e.Permits(got.Decision) {
			t.Errorf("%s does not know %s", e, got.Decision)
		}
	}
}

func TestDenyWithoutAReasonNamesItsHook(t *testing.T) {
	expect(t, schema.Denied(`refused by the hook "test"`), answer(t, "deny", nil, event(schema.PreToolUse)))
}
