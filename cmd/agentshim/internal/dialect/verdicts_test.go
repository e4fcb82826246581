package dialect_test

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A named verdict is one that the fabric can give at some event.
type named struct {
	name    string
	verdict schema.Verdict
}

const (
	toolText = "HOOK TOOL TEXT"
	userText = "HOOK USER TEXT"
	because  = "HOOK REASON"
)

func injected(texts ...string) []schema.Injection {
	var all []schema.Injection
	for _, text := range texts {
		in := schema.Injection{Content: text, Strategy: schema.ToolResult, Hook: "h"}
		if text == userText {
			in.Strategy = schema.UserMessage
		}
		all = append(all, in)
	}
	return all
}

// verdicts returns named verdicts that the fabric can give at an event. If the fabric does not judge
// the event, the only verdict is no opinion.
func verdicts(t schema.EventType) []named {
	if t == "" {
		return []named{{name: "none"}}
	}
	var all []named
	for _, n := range everyVerdict() {
		if possible(t, &n.verdict) {
			all = append(all, n)
		}
	}
	if b := t.Blocking(); b != schema.None {
		all = append(all, named{"unreachable-closed", schema.Verdict{Decision: b, Reason: "nobody judged this call",
			HookErrors: []string{"nobody answers"}}})
	}
	return append(all, named{"unreachable-open", schema.Verdict{HookErrors: []string{"nobody answers"}}})
}

// possible reports whether the fold can return v at t.
func possible(t schema.EventType, v *schema.Verdict) bool {
	message := v.Decision == schema.Stop && v.Value.Kind() == '{'
	return t.Permits(v.Decision) && (!message || t.StopValue() == schema.MessageValue) &&
		(v.UpdatedInput == nil || t.Rewrites() == schema.RewriteInput) &&
		(v.UpdatedOutput == nil || t.Rewrites() == schema.RewriteOutput) &&
		(v.Value == nil || v.Decision == schema.Stop || t.Rewrites() == schema.RewriteMessage || t.Rewrites() == schema.RewriteResponse)
}

// effects returns some effects of each kind.
func effects() []jsontext.Value {
	return []jsontext.Value{
		jsontext.Value(`{"append_message":{"content":"HOOK SYSTEM MESSAGE"}}`),
		jsontext.Value(`{"append_message":{"role":"user","content":"HOOK USER MESSAGE"}}`),
		jsontext.Value(`{"append_message":{"role":"assistant","content":"HOOK ASSISTANT MESSAGE"}}`),
		jsontext.Value(`{"set_flag":{"seen":true}}`),
		jsontext.Value(`{"drop_messages":{"last":1}}`),
		jsontext.Value(`{"drop_messages":{"first":1}}`),
	}
}

func everyVerdict() []named {
	raw := func(s string) jsontext.Value { return jsontext.Value(s) }
	return []named{
		{"none", schema.Verdict{Decision: schema.Continue}},
		{"allow", schema.Verdict{Decision: schema.Allow, Reason: because}},
		{"allow and auto_approve", schema.Verdict{Decision: schema.Allow, Reason: because, AutoApprove: true}},
		{"deny", schema.Verdict{Decision: schema.Deny, Reason: because}},
		{"deny without a reason", schema.Verdict{Decision: schema.Deny}},
		{"deny and inject", schema.Verdict{Decision: schema.Deny, Reason: because, Injections: injected(toolText)}},
		{"ask", schema.Verdict{Decision: schema.Ask, Reason: because}},
		{"ask and rewrite", schema.Verdict{Decision: schema.Ask, Reason: because, UpdatedInput: raw(`{"command":"ls"}`)}},
		{"rewrite", schema.Verdict{UpdatedInput: raw(`{"command":"ls"}`)}},
		{"rewrite and auto_approve", schema.Verdict{Decision: schema.Allow, AutoApprove: true, UpdatedInput: raw(`{"command":"ls"}`)}},
		{"inject tool_result", schema.Verdict{Injections: injected(toolText)}},
		{"inject user_message", schema.Verdict{Injections: injected(userText)}},
		{"inject both", schema.Verdict{Injections: injected(toolText, userText)}},
		{"rewrite and inject", schema.Verdict{UpdatedInput: raw(`{"command":"ls"}`), Injections: injected(toolText)}},
		{"replace by a string", schema.Verdict{UpdatedOutput: raw(`"NEW OUTPUT"`)}},
		{"replace by an object", schema.Verdict{UpdatedOutput: raw(`{"stdout":"NEW OUTPUT"}`)}},
		{"replace, feedback and inject", schema.Verdict{Decision: schema.Deny, Reason: because, UpdatedOutput: raw(`"NEW OUTPUT"`), Injections: injected(toolText)}},
		{"fail", schema.Verdict{Decision: schema.Fail, Reason: because}},
		{"stop", schema.Verdict{Decision: schema.Stop, Reason: because, Value: raw(`"STOP VALUE"`)}},
		{"stop with a message", schema.Verdict{Decision: schema.Stop, Reason: because, Value: raw(`{"role":"assistant","content":"STOP MESSAGE"}`)}},
		{"stop with calls", schema.Verdict{Decision: schema.Stop, Reason: because,
			Value: raw(`{"role":"assistant","content":"","tool_calls":[{"name":"Bash","input":{"command":"ls"}}]}`)}},
		{"message", schema.Verdict{Value: raw(`"NEW MESSAGE"`)}},
		{"message as an object", schema.Verdict{Value: raw(`{"role":"assistant","content":"NEW MESSAGE","tool_calls":[{"name":"Bash","input":{}}]}`)}},
		{"effects", schema.Verdict{Decision: schema.Continue, Effects: effects()}},
		{"effects and inject", schema.Verdict{Decision: schema.Continue, Effects: effects(), Injections: injected(toolText)}},
		{"retry with effects", schema.Verdict{Decision: schema.Retry, Reason: because, Effects: effects(), Injections: injected(userText)}},
		{"retry", schema.Verdict{Decision: schema.Retry, Reason: because}},
		{"retry and inject", schema.Verdict{Decision: schema.Retry, Reason: because, Injections: injected(userText)}},
		{"terminate", schema.Verdict{Terminate: &schema.Terminate{Reason: "the time is over"}}},
		{"deny and terminate", schema.Verdict{Decision: schema.Deny, Reason: because, Terminate: &schema.Terminate{Reason: "the time is over"}}},
		{"retry and terminate", schema.Verdict{Decision: schema.Retry, Reason: because, Terminate: &schema.Terminate{Reason: "the time is over"}}},
		{"restart", schema.Verdict{Restart: &schema.Restart{Reason: "a new round", Content: "BEGIN WITH THIS"}}},
	}
}
