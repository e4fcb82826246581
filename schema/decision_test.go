package schema_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// row is one row of the documentation's table of events.
type row struct {
	decisions string
	stop      schema.ValueKind
	rewrite   schema.Rewrite
	terminal  string // the decisions that end the chain
	blocks    string // the decisions that prevent delivery
	blocking  schema.Decision
	readonly  bool
}

var documented = map[schema.EventType]row{
	schema.SessionStart:        {decisions: "continue", readonly: true},
	schema.SessionEnd:          {decisions: "continue", readonly: true},
	schema.UserPromptSubmit:    {decisions: "continue deny", terminal: "deny", blocks: "deny", blocking: schema.Deny, readonly: true},
	schema.BeforeLLMCall:       {decisions: "continue fail stop", stop: schema.MessageValue, terminal: "fail stop", blocks: "fail stop", blocking: schema.Fail, readonly: true},
	schema.AfterLLMCall:        {decisions: "continue retry fail stop", stop: schema.MessageValue, rewrite: schema.RewriteMessage, terminal: "retry fail stop", blocks: "fail stop", blocking: schema.Fail},
	schema.PreToolUse:          {decisions: "continue allow ask deny fail stop", stop: schema.ToolResultValue, rewrite: schema.RewriteInput, terminal: "deny fail stop", blocks: "deny fail stop", blocking: schema.Deny},
	schema.PostToolUse:         {decisions: "continue deny fail stop", stop: schema.ToolResultValue, rewrite: schema.RewriteOutput, terminal: "stop", blocks: "fail stop", readonly: true},
	schema.ToolError:           {decisions: "continue deny fail stop", stop: schema.ToolResultValue, rewrite: schema.RewriteOutput, terminal: "stop", blocks: "fail stop", readonly: true},
	schema.BeforeFinalResponse: {decisions: "continue retry fail stop", stop: schema.MessageValue, rewrite: schema.RewriteMessage, terminal: "retry fail stop", blocks: "fail stop", blocking: schema.Fail},
	schema.QueryEnd:            {decisions: "continue fail stop", stop: schema.ResponseValue, rewrite: schema.RewriteResponse, terminal: "stop", blocks: "fail stop", readonly: true},
}

var everyDecision = []schema.Decision{
	schema.None, schema.Continue, schema.Allow, schema.Ask, schema.Deny, schema.Retry, schema.Stop, schema.Fail, "DENY", `""`,
}

func TestTheTableOfEventsIsAsDocumented(t *testing.T) {
	if len(documented) != len(schema.EventTypes()) {
		t.Fatalf("%d events, %d documented", len(schema.EventTypes()), len(documented))
	}
	for event, want := range documented {
		got := row{
			stop: event.StopValue(), rewrite: event.Rewrites(), blocking: event.Blocking(), readonly: event.ReadonlyByDefault(),
			decisions: words(event.Decisions(), func(schema.Decision) bool { return true }),
			terminal:  words(event.Decisions(), event.Terminal), blocks: words(event.Decisions(), event.Blocks),
		}
		want.decisions, want.terminal, want.blocks = sorted(want.decisions), sorted(want.terminal), sorted(want.blocks)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", event, diff)
		}
		if event.Chains() != (want.terminal != "") && event.Blocking() != schema.None {
			t.Errorf("%s: Chains is %v", event, event.Chains())
		}
		for _, d := range everyDecision {
			legal := d == schema.None || slices.Contains(strings.Fields(want.decisions), string(d))
			if event.Permits(d) != legal {
				t.Errorf("%s permits %q: %v", event, d, !legal)
			}
		}
	}
}

func words(all []schema.Decision, keep func(schema.Decision) bool) string {
	var kept []string
	for _, d := range all {
		if keep(d) {
			kept = append(kept, string(d))
		}
	}
	return sorted(strings.Join(kept, " "))
}

func sorted(words string) string {
	all := strings.Fields(words)
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestAnUnknownEventPermitsNothing(t *testing.T) {
	const unknown = schema.EventType("PreCompact")
	if unknown.Known() || unknown.Permits(schema.Allow) || unknown.Terminal(schema.Deny) || unknown.Chains() ||
		len(unknown.Decisions()) != 0 || unknown.Blocking() != schema.None || unknown.StopValue() != schema.NoValue || unknown.Rewrites() != schema.NoRewrite {
		t.Error("an unknown event has traits")
	}
	if r, err := schema.DecodeResult(unknown, []byte(`{"decision":"deny","allowed":true,"continue":false}`)); err != nil || r.Decision != schema.Deny {
		t.Errorf("an answer to it reads as %+v, %v", r, err)
	}
}

func TestEventNamesAreParsed(t *testing.T) {
	if got := len(schema.SeedNames()); got != 8 {
		t.Errorf("there are %d other names; this test knows 8", got)
	}
	for _, event := range schema.EventTypes() {
		if got, err := schema.ParseEventType(string(event)); err != nil || got != event {
			t.Errorf("%s parses as %q, %v", event, got, err)
		}
	}
	for name, want := range map[string]schema.EventType{
		"BEFORE_LLM_CALL": schema.BeforeLLMCall, "AFTER_LLM_CALL": schema.AfterLLMCall, "BEFORE_TOOL_EXECUTION": schema.PreToolUse,
		"AFTER_TOOL_EXECUTION": schema.PostToolUse, "ON_TOOL_ERROR": schema.ToolError, "BEFORE_FINAL_RESPONSE": schema.BeforeFinalResponse,
		"QUERY_END": schema.QueryEnd, "Stop": schema.BeforeFinalResponse,
	} {
		if got, err := schema.ParseEventType(name); err != nil || got != want {
			t.Errorf("%s parses as %q, %v", name, got, err)
		}
		if e, err := schema.ReadEvent([]byte(`{"hook_type":"` + name + `"}`)); err != nil || e.HookType != want {
			t.Errorf("an event of %s is read as %+v, %v", name, e, err)
		}
		if e := schema.Glance([]byte(`{"hook_type":"` + name + `",`)); e.HookType != want {
			t.Errorf("of an event of %s is seen %+v", name, e)
		}
	}
	_, err := schema.ParseEventType("pretooluse")
	if err == nil || !strings.Contains(err.Error(), "PreToolUse, PostToolUse") {
		t.Errorf("no list of the names in %v", err)
	}
}

func TestRewritesReplaceTheEventsSubject(t *testing.T) {
	v := schema.Verdict{UpdatedInput: raw(`{"i":1}`), UpdatedOutput: raw(`"o"`), Value: raw(`"v"`)}
	for event, want := range map[schema.EventType]string{
		schema.PreToolUse: `{"i":1}`, schema.PostToolUse: `"v"`, schema.ToolError: `"v"`, schema.AfterLLMCall: `"v"`,
		schema.BeforeFinalResponse: `"v"`, schema.QueryEnd: `"v"`, schema.SessionStart: "", schema.BeforeLLMCall: "",
	} {
		rw := v.Rewritten(event)
		if string(rw) != want {
			t.Errorf("%s: the rewrite is %s, want %s", event, rw, want)
		}
		e := &schema.Event{HookType: event}
		e.Apply(rw)
		if got := string(e.ToolInput) + string(e.ToolOutput) + string(e.Message) + string(e.Response); got != want {
			t.Errorf("%s: applied, the event holds %s", event, got)
		}
	}
	for _, d := range []schema.Decision{schema.None, schema.Continue, schema.Fail} {
		sent := schema.Verdict{Decision: d, Value: raw(`"v"`)}
		if sent.Rewritten(schema.QueryEnd) == nil {
			t.Errorf("a rewritten response is lost beside %q", d)
		}
	}
	stopped := schema.Verdict{Decision: schema.Stop, Value: raw(`"v"`)}
	if stopped.Rewritten(schema.AfterLLMCall) != nil {
		t.Error("a stop's value counts as a rewrite")
	}
	if stopped.Rewritten(schema.QueryEnd) == nil {
		t.Error("a stop's response takes no place")
	}
	rewritten := schema.Verdict{UpdatedOutput: raw(`"o"`)}
	if got := rewritten.Rewritten(schema.PostToolUse); string(got) != `"o"` {
		t.Errorf("without a stop the output is rewritten to %s", got)
	}
}

func TestARewrittenBodyIsTheSameEvent(t *testing.T) {
	for _, event := range []schema.EventType{schema.PreToolUse, schema.PostToolUse, schema.AfterLLMCall, schema.QueryEnd} {
		example := *events()[event]
		body, err := schema.Marshal(&example)
		if err != nil {
			t.Fatal(err)
		}
		r := schema.Routing{Event: event, Agent: example.AgentID, Session: example.SessionID, Tool: example.ToolName, ID: example.EventID}
		body, err = schema.RewriteBody(body, r, raw(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := schema.DecodeEvent(body, r)
		if err != nil {
			t.Fatal(err)
		}
		example.Apply(raw(`{}`))
		if diff := cmp.Diff(&example, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", event, diff)
		}
	}
	if _, err := schema.RewriteBody([]byte(`{"tool_name":"Read"}`), preToolUse, raw(`{}`)); err == nil {
		t.Error("a forged event was rewritten")
	}
	if _, err := schema.RewriteBody([]byte(`{}`), preToolUse, raw(`{`)); err == nil || !strings.Contains(err.Error(), "cannot be encoded") {
		t.Errorf("a rewrite that is no JSON was put in: %v", err)
	}
}
