package builtin

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

const reminderHook = "high_priority_task_reminder"

func TestTheReminderFollowsACompletedTaskOfHighPriority(t *testing.T) {
	const task = `{"success":true,"task":{"id":"t1","priority":"high","status":"completed"}}`
	quoted := strings.ReplaceAll(task, `"`, `\"`)
	for name, c := range map[string]struct {
		output string
		want   bool
	}{
		"an object":                          {task, true},
		"JSON in a string":                   {`"` + quoted + `"`, true},
		"MCP content":                        {`[{"type":"text","text":"` + quoted + `"}]`, true},
		"an MCP result":                      {`{"content":[{"type":"text","text":"` + quoted + `"}],"structuredContent":` + task + `}`, true},
		"structured content alone":           {`{"structured_content":{"result":` + task + `}}`, true},
		"Gemini CLI":                         {`{"llmContent":[{"text":"<untrusted_context>\n` + quoted + `\n</untrusted_context>"}]}`, true},
		"Copilot CLI":                        {`{"resultType":"success","textResultForLlm":"` + quoted + `"}`, true},
		"escapes":                            {`{"task":{"priority":"\u0068igh","status":"complete\u0064"}}`, true},
		"another priority":                   {`{"task":{"priority":"low","status":"completed"},"x":"high"}`, false},
		"another status":                     {`{"task":{"priority":"high","status":"in_progress"},"x":"completed"}`, false},
		"two tasks, each with one condition": {`{"task":{"priority":"high"},"result":{"task":{"status":"completed"}}}`, false},
		"no task":                            {`{"task":null,"note":"high, completed"}`, false},
		"a task that is not an object":       {`{"task":["high","completed"]}`, false},
		"a task inside of another":           {`{"task":{"task":{"priority":"high","status":"completed"}}}`, false},
		"a task of a list":                   {`{"newly_ready_tasks":[` + task + `],"task":{}}`, false},
		"a failure":                          {`{"isError":true,"structuredContent":` + task + `}`, false},
		"prose":                              {`"the high priority task is completed"`, false},
		"nothing":                            {``, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := event(schema.PostToolUse)
			e.ToolOutput = jsontext.Value(c.output)
			got := answer(t, reminderHook, nil, e)
			if !c.want {
				expect(t, schema.Result{}, got)
				return
			}
			if len(got.Injections) != 1 || got.Injections[0].Strategy != schema.UserMessage {
				t.Fatalf("it says %+v", got)
			}
			golden(t, "reminder", got.Injections[0].Content)
		})
	}
}

func TestTheReminderHasTheLinesOfItsOption(t *testing.T) {
	e := event(schema.PostToolUse)
	e.ToolOutput = jsontext.Value(`{"task":{"priority":"high","status":"completed"}}`)
	got := answer(t, reminderHook, map[string]any{"lines": []any{"What broke?", "What next?"}}, e)
	if text := got.Injections[0].Content; !strings.Contains(text, "\n  - What broke?\n  - What next?\n") || strings.Contains(text, "memory/") {
		t.Errorf("it says\n%s", text)
	}
}
