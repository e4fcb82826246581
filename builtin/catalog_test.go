package builtin

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// answer returns the result of the hook named handler for e.
func answer(t *testing.T, handler string, options map[string]any, e *schema.Event) schema.Result {
	t.Helper()
	h, err := Catalog(nil)[handler](schema.Hook{Name: "test", Handler: handler, Event: e.HookType, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.Handle(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func expect(t *testing.T, want, got schema.Result) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the answer differs (-want +got):\n%s", diff)
	}
}

func event(t schema.EventType) *schema.Event {
	return &schema.Event{
		HookType: t, EventID: "event-1", AgentID: "agent-1", ToolName: "Bash",
		ToolInput: jsontext.Value(`{"command":"cat secret"}`), ToolOutput: jsontext.Value(`"secret"`),
	}
}

func TestEveryHookRejectsInvalidOptions(t *testing.T) {
	for name, c := range map[string]struct {
		handler string
		event   schema.EventType
		options map[string]any
		want    []string
	}{
		"allow has no options":             {"allow", schema.PreToolUse, map[string]any{"reason": "x"}, []string{`"allow" has no option "reason"`, "it has none"}},
		"a misspelt option":                {"deny", schema.PreToolUse, map[string]any{"resaon": "x"}, []string{`"deny" has no option "resaon"`, "it has reason"}},
		"an option in another case":        {"deny", schema.PreToolUse, map[string]any{"Reason": "x"}, []string{`no option "Reason"`}},
		"a number for a text":              {"deny", schema.PreToolUse, map[string]any{"reason": 5}, []string{`"reason" of "deny" is a number; it must be a string`}},
		"a list for a text":                {"inject_text", schema.PreToolUse, map[string]any{"text": []any{"x"}}, []string{`"text" of "inject_text" is a list; it must be a string`}},
		"an object for a text":             {"inject_text", schema.PreToolUse, map[string]any{"text": map[string]any{}}, []string{"is an object; it must be a string"}},
		"a boolean for a text":             {"log", schema.PreToolUse, map[string]any{"level": true}, []string{"is a boolean; it must be a string"}},
		"a reason that is too long":        {"deny", schema.PreToolUse, map[string]any{"reason": strings.Repeat("x", maxText+1)}, []string{"65537 bytes", "65536"}},
		"a text that is too long":          {"inject_text", schema.PreToolUse, map[string]any{"text": strings.Repeat("x", maxText+1)}, []string{"65537 bytes"}},
		"deny where nothing is denied":     {"deny", schema.SessionStart, nil, []string{"cannot deny anything at SessionStart"}},
		"inject_text without a text":       {"inject_text", schema.PreToolUse, nil, []string{"has no text"}},
		"an unknown strategy":              {"inject_text", schema.PreToolUse, map[string]any{"text": "x", "strategy": "loudly"}, []string{`"loudly"`, "tool_result or user_message"}},
		"an unknown level":                 {"log", schema.PreToolUse, map[string]any{"level": "loud"}, []string{`"loud"`, "debug, info, warn or error"}},
		"reminders without an output":      {"extract_reminders", schema.PreToolUse, nil, []string{"PreToolUse", "PostToolUse or ToolError"}},
		"a reminder without an output":     {"high_priority_task_reminder", schema.PreToolUse, nil, []string{"put it under PostToolUse"}},
		"a reminder without lines":         {"high_priority_task_reminder", schema.PostToolUse, map[string]any{"lines": []any{}}, []string{"has no text"}},
		"a reminder with an empty line":    {"high_priority_task_reminder", schema.PostToolUse, map[string]any{"lines": []any{"a", ""}}, []string{"has no text"}},
		"an audit without a file":          {"audit_log", schema.PreToolUse, nil, []string{`"file" of "audit_log" is ""`, "absolute path"}},
		"an audit with a relative path":    {"audit_log", schema.PreToolUse, map[string]any{"file": "audit.jsonl"}, []string{"absolute path"}},
		"an audit in tiny files":           {"audit_log", schema.PreToolUse, map[string]any{"file": "/a", "max_bytes": 10}, []string{"write at least 65536"}},
		"an audit with too many old files": {"audit_log", schema.PreToolUse, map[string]any{"file": "/a", "keep": 1001}, []string{"0 to 1000"}},
		"paths after the call":             {"path_permission", schema.PostToolUse, map[string]any{"allow": []any{"."}}, []string{"put it under PreToolUse"}},
		"paths without roots":              {"path_permission", schema.PreToolUse, map[string]any{"allow": []any{}}, []string{"names no root"}},
		"a relative base":                  {"path_permission", schema.PreToolUse, map[string]any{"allow": []any{"."}, "base": "x"}, []string{`"base"`, "absolute path"}},
		"an unknown value of shell":        {"path_permission", schema.PreToolUse, map[string]any{"allow": []any{"."}, "shell": "ignore"}, []string{`"ignore"`, "allow or deny"}},
		"a root in a user's home":          {"path_permission", schema.PreToolUse, map[string]any{"deny": []any{"~/.ssh"}}, []string{`"~/.ssh"`, "tools can replace"}},
		"an empty root":                    {"path_permission", schema.PreToolUse, map[string]any{"read_only": []any{""}}, []string{"is empty"}},
		"an answer after a tool":           {"require_text", schema.PostToolUse, map[string]any{"text": []any{"x"}}, []string{"PostToolUse", "AfterLLMCall or BeforeFinalResponse"}},
		"nothing required":                 {"require_text", schema.AfterLLMCall, map[string]any{"guidance": "x"}, []string{"has neither"}},
		"an empty text required":           {"require_text", schema.AfterLLMCall, map[string]any{"text": []any{"a", ""}}, []string{"empty string"}},
		"an invalid required pattern":      {"require_text", schema.AfterLLMCall, map[string]any{"pattern": "("}, []string{`"pattern"`, "missing closing )"}},
		"guidance that is too long":        {"require_text", schema.AfterLLMCall, map[string]any{"text": []any{"a"}, "guidance": strings.Repeat("x", maxText+1)}, []string{"65537 bytes"}},
		"context after the call":           {"append_context", schema.AfterLLMCall, map[string]any{"text": "x"}, []string{"put it under BeforeLLMCall"}},
		"context without text":             {"append_context", schema.BeforeLLMCall, nil, []string{"has no text to add"}},
		"context of the assistant":         {"append_context", schema.BeforeLLMCall, map[string]any{"text": "x", "role": "assistant"}, []string{`"assistant"`, "system or user"}},
		"a path with an empty name":        {"extract_reminders", schema.PostToolUse, map[string]any{"field": "a..b"}, []string{`"a..b"`, "single dots"}},
		"an invalid pattern":               {"extract_reminders", schema.PostToolUse, map[string]any{"pattern": "("}, []string{`"pattern"`, "missing closing )"}},
		"a pattern without a group":        {"extract_reminders", schema.PostToolUse, map[string]any{"pattern": "x"}, []string{"has 0 groups", "one pair of parentheses"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Catalog(nil)[c.handler](schema.Hook{Name: "test", Handler: c.handler, Event: c.event, Options: c.options})
			if err == nil {
				t.Fatalf("it loaded: %v", h)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestANullOptionCountsAsAbsent(t *testing.T) {
	expect(t, schema.Denied(`refused by the hook "test"`), answer(t, "deny", map[string]any{"reason": nil}, event(schema.PreToolUse)))
}
