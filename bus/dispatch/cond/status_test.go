package cond_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// at returns an event of that type, about the tool Bash if it is about a tool.
func at(event schema.EventType, body string) *dispatch.View {
	r := routing
	if r.Event = event; !event.HasTool() {
		r.Tool = ""
	}
	return dispatch.NewView(r, []byte(body))
}

// statusEvent has all fields, so that only the event's type decides which fields a
// condition can read.
const statusEvent = `{"tool_use_id": "t1", "tool_input": {"command": "ls"}, "tool_output": {"rows": 3}, "error": "the database is locked",
	"message": {"content": "hi", "tool_calls": [{"id": "c1", "name": "Bash", "input": {"command": "ls"}}, {"name": "now"}]},
	"iteration": 3, "flags": {"retried": true, "n": 2}}`

// The documentation lists which fields a condition can read at which event.
func TestAConditionReadsTheStatusOfItsEvent(t *testing.T) {
	const no = "null null null"
	seen := map[schema.EventType]string{
		schema.SessionStart: no, schema.UserPromptSubmit: no, schema.BeforeLLMCall: no, schema.QueryEnd: no, schema.SessionEnd: no,
		schema.PreToolUse: "there null null", schema.PostToolUse: "null there null", schema.ToolError: "null there null",
		schema.AfterLLMCall: "null null there", schema.BeforeFinalResponse: "null null there",
	}
	for _, event := range schema.EventTypes() {
		want := strings.Fields(seen[event])
		for i, word := range []string{"tool_call", "tool_result", "assistant_message"} {
			member := []string{"name", "name", "content"}[i]
			for expr, holds := range map[string]bool{
				word + " == null":                             want[i] == "null",
				word + " != null":                             want[i] == "there",
				"has(" + word + "." + member + ")":            want[i] == "there",
				word + ".?" + member + `.orValue("-") == "-"`: want[i] == "null",
			} {
				if got, err := compile(t, expr).Holds(at(event, statusEvent)); err != nil || got != holds {
					t.Errorf("%s: %s = %v, %v", event, expr, got, err)
				}
			}
			if _, err := compile(t, word+"."+member+` == "x"`).Holds(at(event, statusEvent)); (err != nil) != (want[i] == "null") {
				t.Errorf("%s: %s.%s: %v", event, word, member, err)
			}
		}
		for _, expr := range []string{
			`event == hook_type && event == "` + string(event) + `"`, `agent == agent_id && agent == "a1"`, `iteration == 3`,
			`flags.retried && flags.n == 2 && !has(flags.other)`,
		} {
			if got, err := compile(t, expr).Holds(at(event, statusEvent)); err != nil || !got {
				t.Errorf("%s: %s = %v, %v", event, expr, got, err)
			}
		}
	}
}

func TestAConditionReadsMembersOfTheStatus(t *testing.T) {
	for _, c := range []struct {
		event schema.EventType
		expr  string
		want  bool
	}{
		{schema.PreToolUse, `tool_call.id == "t1" && tool_call.size() == 3`, true},
		{schema.PreToolUse, `tool_call.name == "Bash" && tool_call.input.command.startsWith("l")`, true},
		{schema.PreToolUse, `tool_call.input == tool_input`, true},
		{schema.PreToolUse, `tool_call.input.?path.orValue("") == ""`, true},
		{schema.PostToolUse, `tool_result.id == "t1" && tool_result.name == "Bash" && tool_result.output == tool_output && tool_result.size() == 4`, true},
		{schema.PostToolUse, `tool_result.output.rows > 3`, false},
		{schema.ToolError, `"database" in ["database"] && tool_result.error.contains("database") && error.contains("locked")`, true},
		{schema.AfterLLMCall, `assistant_message.role == "assistant" && assistant_message.content == "hi"`, true},
		{schema.AfterLLMCall, `assistant_message.tool_calls.size() == 2 && assistant_message.tool_calls[0].input.command == "ls"`, true},
		{schema.AfterLLMCall, `assistant_message.tool_calls.exists(c, c.name == "now" && c.id == "" && c.input == {})`, true},
		{schema.BeforeFinalResponse, `!assistant_message.content.contains("<answer>")`, true},
	} {
		if got, err := compile(t, c.expr).Holds(at(c.event, statusEvent)); err != nil || got != c.want {
			t.Errorf("%s: %s = %v, %v; want %v", c.event, c.expr, got, err, c.want)
		}
	}
}

// Runtimes send messages in different forms.
func TestMessagesOfAllRuntimesAreRead(t *testing.T) {
	for message, content := range map[string]string{
		`"done"`: "done", `{"content":"done"}`: "done", `{"role":"assistant","content":"done","x":1}`: "done",
		`{"candidates":[{"content":{"parts":[]}}]}`: "", `{"content":[{"type":"text"}]}`: "", `""`: "",
	} {
		expr := `assistant_message.role == "assistant" && assistant_message.tool_calls == [] && assistant_message.content == "` + content + `"`
		if got, err := compile(t, expr).Holds(at(schema.AfterLLMCall, `{"message":`+message+`}`)); err != nil || !got {
			t.Errorf("%s: %v, %v", message, got, err)
		}
	}
	for _, body := range []string{`{}`, `{"message":null}`, `{"message":7}`, `{"message":["a"]}`} {
		if got, err := compile(t, `assistant_message == null && flags == {}`).Holds(at(schema.AfterLLMCall, body)); err != nil || !got {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}

// The number of values in a message is limited like that of other fields.
func TestTooManyValuesInAMessageAreAnError(t *testing.T) {
	calls := strings.TrimSuffix(strings.Repeat(`{"name":"a","input":{"l":[`+strings.TrimSuffix(strings.Repeat("1,", 1<<12), ",")+`]}},`, 5), ",")
	body := `{"message":{"content":"x","tool_calls":[` + calls + `]}}`
	if _, err := compile(t, `assistant_message.content == "x"`).Holds(at(schema.AfterLLMCall, body)); err == nil || !strings.Contains(err.Error(), "assistant_message: it has more than 16384 values") {
		t.Errorf("%v", err)
	}
}
