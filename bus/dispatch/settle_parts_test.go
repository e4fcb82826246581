package dispatch_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/schema"
)

func raw(s string) jsontext.Value { return jsontext.Value(s) }

// Each case is one sentence of the contract about the parts of an answer. The
// wanted verdict leaves out the trail; errors are given by number.
var partCases = []struct {
	sentence string
	event    schema.EventType
	hook     schema.Hook
	answer   model.Answer
	want     schema.Verdict
	errors   int
	outcome  schema.OutcomeKind
}{
	{
		"{} as updated_input is a rewrite", schema.PreToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{UpdatedInput: raw(`{}`)}},
		schema.Verdict{UpdatedInput: raw(`{}`)}, 0, schema.OK,
	},
	{
		"null is no rewrite", schema.PreToolUse, schema.Hook{Readonly: true},
		model.Answer{Result: schema.Result{UpdatedInput: raw(`null`), UpdatedOutput: raw(`null`), Value: raw(`null`)}},
		schema.Verdict{}, 0, schema.OK,
	},
	{
		"an ask may rewrite", schema.PreToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Ask, Reason: "sure?", UpdatedInput: raw(`{"a":1}`)}},
		schema.Verdict{Decision: schema.Ask, Reason: "sure?", UpdatedInput: raw(`{"a":1}`)}, 0, schema.OK,
	},
	{
		"a deny is stripped of rewrites", schema.PreToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Deny, UpdatedInput: raw(`{"a":1}`)}},
		schema.Verdict{Decision: schema.Deny}, 0, schema.OK,
	},
	{
		"a stop keeps its value and no rewrite", schema.PreToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Stop, Value: raw(`7`), UpdatedInput: raw(`{"a":1}`)}},
		schema.Verdict{Decision: schema.Stop, Value: raw(`7`)}, 0, schema.OK,
	},
	{
		"a stop's message is a string or an object", schema.BeforeLLMCall, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Stop, Value: raw(`7`)}},
		schema.Verdict{}, 1, schema.Errored,
	},
	{
		"a readonly hook may stop with a value", schema.AfterLLMCall, schema.Hook{Readonly: true},
		model.Answer{Result: schema.Result{Decision: schema.Stop, Value: raw(`{"content":"x"}`)}},
		schema.Verdict{Decision: schema.Stop, Value: raw(`{"content":"x"}`)}, 0, schema.OK,
	},
	{
		"a retry keeps its effects", schema.BeforeFinalResponse, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Retry, Value: raw(`"x"`), Effects: []jsontext.Value{raw(`{"set_flag":{"e":1}}`)}}},
		schema.Verdict{Decision: schema.Retry, Effects: []jsontext.Value{raw(`{"set_flag":{"e":1}}`)}}, 0, schema.OK,
	},
	{
		"feedback after a tool keeps its rewrite", schema.PostToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Deny, Reason: "bad", UpdatedOutput: raw(`"cut"`)}},
		schema.Verdict{Decision: schema.Deny, Reason: "bad", UpdatedOutput: raw(`"cut"`)}, 0, schema.OK,
	},
	{
		"a rewrite from a readonly hook is an error, its deny stands", schema.PreToolUse, schema.Hook{Readonly: true},
		model.Answer{Result: schema.Result{Decision: schema.Deny, Reason: "no", UpdatedInput: raw(`{}`)}},
		schema.Verdict{Decision: schema.Deny, Reason: "no"}, 1, schema.Errored,
	},
	{
		"a rewrite from a readonly hook is an error, its feedback stands", schema.ToolError, schema.Hook{Readonly: true, FailClosed: true},
		model.Answer{Result: schema.Result{Decision: schema.Deny, Reason: "no", UpdatedOutput: raw(`1`)}},
		schema.Verdict{Decision: schema.Deny, Reason: "no"}, 1, schema.Errored,
	},
	{
		"a rewrite from a readonly hook voids its allow", schema.PreToolUse, schema.Hook{Readonly: true, AutoApprove: true},
		model.Answer{Result: schema.Result{Decision: schema.Allow, Reason: "fine", UpdatedInput: raw(`{}`)}},
		schema.Verdict{}, 1, schema.Errored,
	},
	{
		"updated_input that is no object is dropped", schema.PreToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Allow, UpdatedInput: raw(`[1]`)}},
		schema.Verdict{Decision: schema.Allow}, 1, schema.OK,
	},
	{
		"an ask of a guard stands where there is nothing to rewrite", schema.PreToolUse, schema.Hook{FailClosed: true},
		model.Answer{Result: schema.Result{Decision: schema.Ask, Reason: "sure?", UpdatedOutput: raw(`1`)}},
		schema.Verdict{Decision: schema.Ask, Reason: "sure?"}, 1, schema.OK,
	},
	{
		"a fail-closed hook's retry stands beside an invalid message", schema.AfterLLMCall, schema.Hook{FailClosed: true},
		model.Answer{Result: schema.Result{Decision: schema.Retry, Reason: "again", Value: raw(`5`)}},
		schema.Verdict{Decision: schema.Retry, Reason: "again"}, 1, schema.Errored,
	},
	{
		"a user's message is no model's", schema.BeforeLLMCall, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Stop, Value: raw(`{"role":"user","content":"x"}`)}},
		schema.Verdict{}, 1, schema.Errored,
	},
	{
		"a message may have a role of its API's", schema.BeforeLLMCall, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Stop, Value: raw(`{"role":"model","parts":[]}`)}},
		schema.Verdict{Decision: schema.Stop, Value: raw(`{"role":"model","parts":[]}`)}, 0, schema.OK,
	},
	{
		"rewrites of what cannot be rewritten are dropped", schema.BeforeLLMCall, schema.Hook{Readonly: true},
		model.Answer{Result: schema.Result{UpdatedInput: raw(`{}`), UpdatedOutput: raw(`{}`)}},
		schema.Verdict{}, 2, schema.OK,
	},
	{
		"a new message is a string or an object", schema.AfterLLMCall, schema.Hook{},
		model.Answer{Result: schema.Result{Value: raw(`[1]`)}},
		schema.Verdict{}, 1, schema.OK,
	},
	{
		"a value is the tool's new input", schema.PreToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Allow, Value: raw(`{"n":1}`)}},
		schema.Verdict{Decision: schema.Allow, UpdatedInput: raw(`{"n":1}`)}, 0, schema.OK,
	},
	{
		"a value is the tool's new output", schema.PostToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Value: raw(`[1]`)}},
		schema.Verdict{UpdatedOutput: raw(`[1]`)}, 0, schema.OK,
	},
	{
		"of a value and an updated_output the latter counts", schema.ToolError, schema.Hook{},
		model.Answer{Result: schema.Result{Value: raw(`1`), UpdatedOutput: raw(`2`)}},
		schema.Verdict{UpdatedOutput: raw(`2`)}, 1, schema.OK,
	},
	{
		"a value beside an updated_input that is no object does not stand in for it", schema.PreToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Value: raw(`{}`), UpdatedInput: raw(`2`)}},
		schema.Verdict{}, 2, schema.OK,
	},
	{
		"a stop's value is no rewrite", schema.PreToolUse, schema.Hook{Readonly: true},
		model.Answer{Result: schema.Result{Decision: schema.Stop, Value: raw(`{"n":1}`)}},
		schema.Verdict{Decision: schema.Stop, Value: raw(`{"n":1}`)}, 0, schema.OK,
	},
	{
		"a reject is a fail with its reason", schema.BeforeFinalResponse, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: "reject", Reason: "not our task"}},
		schema.Verdict{Decision: schema.Fail, Reason: "not our task"}, 0, schema.OK,
	},
	{
		"a reject where nothing can fail is an error", schema.UserPromptSubmit, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: "reject", Reason: "not our task"}},
		schema.Verdict{}, 1, schema.Errored,
	},
	{
		"a response may be anything", schema.QueryEnd, schema.Hook{},
		model.Answer{Result: schema.Result{Value: raw(`[1]`)}},
		schema.Verdict{Value: raw(`[1]`)}, 0, schema.OK,
	},
	{
		"an effect of no known form is dropped, the rest kept", schema.PreToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Effects: []jsontext.Value{raw(`1`), raw(`{"set_flag":{"e":1}}`), raw(`{"e":1}`)}}},
		schema.Verdict{Effects: []jsontext.Value{raw(`{"set_flag":{"e":1}}`)}}, 2, schema.OK,
	},
	{
		"an unknown strategy is an error and delivered all the same, empty content is not", schema.SessionStart, schema.Hook{},
		model.Answer{Result: schema.Result{Injections: []schema.Injection{
			{Content: "a", Strategy: "shout"}, {Content: "", Strategy: "shout"}, {Content: "b"},
			{Content: "c", Strategy: schema.UserMessage, Hook: "forged", Source: "human", Sequence: 4},
		}}},
		schema.Verdict{Injections: []schema.Injection{
			{Content: "a", Strategy: schema.ToolResult, Hook: "h"}, {Content: "b", Strategy: schema.ToolResult, Hook: "h"},
			{Content: "c", Strategy: schema.UserMessage, Hook: "h"},
		}}, 1, schema.OK,
	},
	{
		"what a hook itself found wrong is passed on", schema.PostToolUse, schema.Hook{FailClosed: true},
		model.Answer{Result: schema.Result{HookErrors: []string{"one", "two"}}},
		schema.Verdict{}, 2, schema.OK,
	},
	{
		"what is legal in a faulty answer is kept", schema.PreToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: "perhaps", Injections: []schema.Injection{{Content: "a"}}, UpdatedInput: raw(`{"a":1}`)}},
		schema.Verdict{UpdatedInput: raw(`{"a":1}`), Injections: []schema.Injection{{Content: "a", Strategy: schema.ToolResult, Hook: "h"}}},
		1, schema.Errored,
	},
	{
		"a result over the bound is an error", schema.PreToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Allow, Reason: strings.Repeat("x", schema.MaxResult+1)}},
		schema.Verdict{}, 1, schema.Errored,
	},
	{
		"of a result over the bound only the decision is kept", schema.PreToolUse, schema.Hook{},
		model.Answer{Result: schema.Result{Decision: schema.Deny, Reason: "no", Injections: []schema.Injection{{Content: strings.Repeat("x", schema.MaxResult+1)}}}},
		schema.Verdict{Decision: schema.Deny, Reason: "no"}, 1, schema.Errored,
	},
	{
		"an ask that came with a fault stands", schema.PreToolUse, schema.Hook{Readonly: true},
		model.Answer{Result: schema.Result{Decision: schema.Ask, Reason: "sure?", UpdatedInput: raw(`{}`)}},
		schema.Verdict{Decision: schema.Ask, Reason: "sure?"}, 1, schema.Errored,
	},
	{
		"a faulty answer from the runner still says its legal things", schema.PreToolUse, schema.Hook{FailClosed: true},
		model.Answer{Kind: schema.Errored, Result: schema.Result{Decision: schema.Fail, Reason: "over"}},
		schema.Verdict{Decision: schema.Fail, Reason: "over"}, 1, schema.Errored,
	},
	{
		"of a hook that ran out of time nothing counts", schema.PreToolUse, schema.Hook{},
		model.Answer{Kind: schema.Late, Result: schema.Result{Decision: schema.Deny, Reason: "late"}},
		schema.Verdict{}, 1, schema.Deadline,
	},
	{
		"an allow of an auto_approve hook skips the prompt", schema.PreToolUse, schema.Hook{AutoApprove: true},
		model.Answer{Result: schema.Result{Decision: schema.Allow}},
		schema.Verdict{Decision: schema.Allow, AutoApprove: true}, 0, schema.OK,
	},
	{
		"an ask of an auto_approve hook does not", schema.PreToolUse, schema.Hook{AutoApprove: true},
		model.Answer{Result: schema.Result{Decision: schema.Ask}},
		schema.Verdict{Decision: schema.Ask}, 0, schema.OK,
	},
}

func TestAnAnswerSettlesToItsLegalParts(t *testing.T) {
	for _, c := range partCases {
		t.Run(c.sentence, func(t *testing.T) {
			c.hook.Name, c.hook.Event = "h", c.event
			got := dispatch.Settle(&c.hook, outcome(0, c.answer))
			if len(got.HookErrors) != c.errors {
				t.Errorf("errors %q, want %d", got.HookErrors, c.errors)
			}
			row := got.ExecutedHooks
			if len(row) != 1 || row[0].Hook != "h" || row[0].Outcome != c.outcome || row[0].Decision != c.want.Decision {
				t.Errorf("trail %+v, want hook h, outcome %q, decision %q", row, c.outcome, c.want.Decision)
			}
			got.HookErrors, got.ExecutedHooks = nil, nil
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("verdict (-want +got):\n%s", d)
			}
			if d := differences(c.hook, c.answer); d != "" {
				t.Error(d)
			}
		})
	}
}

// If a fail-closed hook wants a change and its answer has a wrong type, the call does not
// continue without the change.
func TestAWrongTypeInAnAnswerOfAFailClosedHookBlocks(t *testing.T) {
	for event, r := range map[schema.EventType]schema.Result{
		schema.PreToolUse:          {Decision: schema.Allow, UpdatedInput: raw(`[1]`)},
		schema.AfterLLMCall:        {Value: raw(`[1]`)},
		schema.BeforeFinalResponse: {Value: raw(`{"role":"tool"}`)},
		schema.BeforeLLMCall:       {Effects: []jsontext.Value{raw(`{"e":1}`)}},
	} {
		h := schema.Hook{Name: "h", Event: event, FailClosed: true}
		got := dispatch.Settle(&h, &schema.Outcome{Result: r})
		if got.Decision != event.Blocking() || got.Reason == "" || got.UpdatedInput != nil || got.Value != nil {
			t.Errorf("%s: %+v", event, got)
		}
	}
}

func TestAFaultyAskOfAFailClosedHookIsADeny(t *testing.T) {
	h := schema.Hook{Name: "h", Event: schema.PreToolUse, Readonly: true, FailClosed: true}
	got := dispatch.Settle(&h, &schema.Outcome{Result: schema.Result{Decision: schema.Ask, UpdatedInput: raw(`{}`)}})
	if got.Decision != schema.Deny || got.Reason == "" {
		t.Errorf("%+v", got)
	}
}

func TestADenyWhoseReasonIsTooLongIsADeny(t *testing.T) {
	h := schema.Hook{Name: "h", Event: schema.PreToolUse}
	got := dispatch.Settle(&h, &schema.Outcome{Result: schema.Denied(strings.Repeat("x", schema.MaxResult+1))})
	if got.Decision != schema.Deny || got.Reason == "" || len(got.Reason) > schema.MaxReason+len("…") {
		t.Errorf("decision %q, %d bytes of reason", got.Decision, len(got.Reason))
	}
}
