package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

func TestAProgramReadsTheEventAndItsClaudeCodeNames(t *testing.T) {
	e := runnertest.Event("Bash")
	e.ToolOutput = jsontext.Value(`{"stdout":"hi","n":1.50}`)
	for event, name := range map[schema.EventType]string{
		schema.PreToolUse: "PreToolUse", schema.PostToolUse: "PostToolUse", schema.ToolError: "PostToolUseFailure",
		schema.BeforeFinalResponse: "Stop", schema.UserPromptSubmit: "UserPromptSubmit", schema.AfterLLMCall: "AfterLLMCall",
	} {
		e.HookType = event
		b, err := encode(e)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]jsontext.Value
		if err := schema.Unmarshal(b, &got); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		want := map[string]jsontext.Value{
			"hook_event_name": jsontext.Value(`"` + name + `"`), "hook_type": jsontext.Value(`"` + string(event) + `"`),
			"tool_response": e.ToolOutput, "tool_output": e.ToolOutput, "tool_input": e.ToolInput,
			"event_id": jsontext.Value(`"` + e.EventID + `"`), "session_id": jsontext.Value(`"session-1"`),
			"agent_id": jsontext.Value(`"agent-1"`), "orchestrator_id": jsontext.Value(`"orchestrator-1"`),
			"tool_name": jsontext.Value(`"Bash"`), "cwd": jsontext.Value(`"/home/dev/project"`), "timestamp": jsontext.Value("null"),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", event, diff)
		}
	}
}

// MassGen's HookEvent always has these members, and scripts read them without a check.
func TestAProgramAlwaysReadsTheMembersOfAHookEvent(t *testing.T) {
	b, err := encode(&schema.Event{HookType: schema.BeforeLLMCall, AgentID: "agent-1"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"hook_event_name":"BeforeLLMCall","session_id":"","orchestrator_id":"","timestamp":null,"tool_name":"",` +
		`"tool_input":{},"tool_output":null,"hook_type":"BeforeLLMCall","agent_id":"agent-1"}` + "\n"
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestInvalidUTF8ReachesAProgramAsUTF8(t *testing.T) {
	e := runnertest.Event("B\xffsh")
	e.ToolOutput = jsontext.Value("\"\xff\"")
	b, err := encode(e)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(b); s != strings.ToValidUTF8(s, "") || !strings.Contains(s, "\uFFFD") {
		t.Errorf("not UTF-8, or something was taken out: %q", s)
	}
}

func TestTheEnvironmentHasFactsAndNamedVariables(t *testing.T) {
	worker := []string{
		"PATH=/bin", "HOME=/root", "LANG=C", "SECRET=1", "TOKEN=a=b", "MASSGEN_TOOL_NAME=forged", "CLAUDE_PROJECT_DIR=forged", "EMPTY=",
		"TRACEPARENT=forged", "TRACESTATE=forged",
	}
	env, err := newEnviron(worker, []string{"TOKEN", "UNSET", "EMPTY", "MASSGEN_TOOL_NAME", "CLAUDE_PROJECT_DIR", "TRACEPARENT", "TRACESTATE"})
	if err != nil {
		t.Fatal(err)
	}
	e := runnertest.Event("Bash")
	e.OrchestratorID = ""
	got := env.of(e, nil)
	slices.Sort(got)
	want := []string{
		"CLAUDE_PROJECT_DIR=/home/dev/project", "EMPTY=",
		"HOME=/root", "HOOK_AGENT_ID=agent-1", "HOOK_HOOK_TYPE=PreToolUse", "HOOK_ORCHESTRATOR_ID=",
		"HOOK_SESSION_ID=session-1", "HOOK_TOOL_NAME=Bash", "HOOK_TYPE=PreToolUse", "LANG=C",
		"MASSGEN_AGENT_ID=agent-1", "MASSGEN_HOOK_TYPE=PreToolUse", "MASSGEN_ORCHESTRATOR_ID=",
		"MASSGEN_SESSION_ID=session-1", "MASSGEN_TOOL_NAME=Bash", "PATH=/bin", "TOKEN=a=b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the environment differs (-want +got):\n%s", diff)
	}
}

func TestStrangeNamesDoNotBreakTheStart(t *testing.T) {
	for name, tool := range map[string]string{
		"NUL": "Ba\x00sh", "a line": "a\nb=c", "not UTF-8": "\xff", "huge": strings.Repeat("ä", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			e := runnertest.Event(tool)
			e.SessionID, e.AgentID, e.OrchestratorID, e.Cwd = tool, tool, tool, tool
			expect(t, shellHook(`echo '{"decision":"allow"}'`), e, schema.Allowed())
		})
	}
	if got := fit("Ba\x00sh"); got != "Ba\uFFFDsh" {
		t.Errorf("a name with a NUL byte became %q", got)
	}
	if got := fit("a" + strings.Repeat("ä", 1<<20)); len(got) > schema.MaxHeader || got != strings.ToValidUTF8(got, "") {
		t.Errorf("a huge name became one of %d bytes", len(got))
	}
}
