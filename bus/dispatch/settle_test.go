package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
	"github.com/hookfabric/hookfabric/schema"
)

// differences compares the results of the code and of the model for one answer.
func differences(h schema.Hook, a model.Answer) string {
	want := model.Expectation{Event: h.Event, Part: model.Normalise(h, h.Event, a)}
	got := dispatch.Settle(&h, outcome(0, a))
	d := want.Diff(got)
	if row := got.ExecutedHooks[0]; row.Decision != got.Decision || row.Reason != got.Reason {
		d = append(d, fmt.Sprintf("the trail says %q, %q", row.Decision, row.Reason))
	}
	if failed := len(got.HookErrors) > 0; failed != (got.ExecutedHooks[0].Error != "") {
		d = append(d, "an error is in the verdict or in the trail, not in both")
	}
	return strings.Join(d, "\n")
}

func TestSettleEqualsTheModelsNormalise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := gen.EventTypes().Draw(t, "event")
		h := gen.Hooks(event, gen.Shape{}).Draw(t, "hook")
		h.Name = "h"
		a := gen.Answers(h.Event).Draw(t, "answer")
		if a.Kind == schema.Errored && rapid.Bool().Draw(t, "half an answer") {
			a.Result = gen.Results(h.Event).Draw(t, "result")
		}
		if d := differences(h, a); d != "" {
			t.Fatal(d)
		}
	})
}

// Every cell of the contract's tables: each event, decision and kind of outcome, under both
// policies, for readonly hooks and others, with and without a value and a rewrite.
func TestEveryCellEqualsTheModels(t *testing.T) {
	bustest.PlainOnly(t, "all cells: one answer after the other")
	decisions := []schema.Decision{
		schema.None, schema.Continue, schema.Allow, schema.Ask, schema.Deny, schema.Retry, schema.Stop, schema.Fail, schema.Reject, "DENY",
	}
	kinds := append(schema.OutcomeKinds(), "")
	values := []jsontext.Value{nil, jsontext.Value(`"text"`), jsontext.Value(`7`), jsontext.Value(`{}`), jsontext.Value(`null`)}
	rewrites := []jsontext.Value{nil, jsontext.Value(`{}`), jsontext.Value(`7`)}
	cells := 0
	for _, event := range schema.EventTypes() {
		for _, decision := range decisions {
			for _, kind := range kinds {
				for flags := range 8 {
					for _, value := range values {
						for _, rewrite := range rewrites {
							h := schema.Hook{Name: "h", Event: event, FailClosed: flags&1 > 0, Readonly: flags&2 > 0, AutoApprove: flags&4 > 0}
							a := model.Answer{Kind: kind, Result: schema.Result{
								Decision: decision, Reason: "because", Value: value, UpdatedInput: rewrite, UpdatedOutput: rewrite,
							}}
							if kind != "" && kind != schema.OK {
								a.Error = "it broke"
							}
							if d := differences(h, a); d != "" {
								t.Errorf("%s, %q, %q, fail_closed %t, readonly %t, value %s, rewrite %s: %s",
									event, decision, kind, h.FailClosed, h.Readonly, value, rewrite, d)
							}
							cells++
						}
					}
				}
			}
		}
	}
	if want := 10 * 10 * 9 * 8 * 5 * 3; cells != want {
		t.Errorf("%d cells, want %d", cells, want)
	}
}

// A failure of a fail-closed hook blocks: it denies a tool or a prompt, fails at the
// model's events, and is a line of the record elsewhere. A hook that cannot be loaded
// blocks even if it is not fail-closed.
func TestAFailureFollowsThePolicyOfItsHook(t *testing.T) {
	blocking := map[schema.EventType]schema.Decision{
		schema.UserPromptSubmit: schema.Deny, schema.PreToolUse: schema.Deny,
		schema.BeforeLLMCall: schema.Fail, schema.AfterLLMCall: schema.Fail, schema.BeforeFinalResponse: schema.Fail,
	}
	for _, event := range schema.EventTypes() {
		for _, kind := range schema.OutcomeKinds() {
			for _, failClosed := range []bool{false, true} {
				if kind == schema.OK {
					continue
				}
				h := schema.Hook{Name: "h", Event: event, FailClosed: failClosed}
				got := dispatch.Settle(&h, &schema.Outcome{Kind: kind, Error: "it broke"})
				want := schema.None
				if failClosed || kind == schema.LoadError {
					want = blocking[event]
				}
				if got.Decision != want || (got.Reason != "") != (want != schema.None) ||
					len(got.HookErrors) != 1 || !strings.HasPrefix(got.HookErrors[0], `hook "h": `) {
					t.Errorf("%s, %s, fail_closed %t: %+v; want %q", event, kind, failClosed, got, want)
				}
			}
		}
	}
}

// A readonly hook changes nothing, and an answer in which it tries to is an error.
func TestAReadonlyHookChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := gen.EventTypes().Draw(t, "event")
		o := &schema.Outcome{Result: gen.Results(event).Draw(t, "result")}
		writer, reader := schema.Hook{Name: "h", Event: event}, schema.Hook{Name: "h", Event: event, Readonly: true}
		could, did := dispatch.Settle(&writer, o), dispatch.Settle(&reader, o)
		if did.UpdatedInput != nil || did.UpdatedOutput != nil || did.Value != nil && did.Decision != schema.Stop {
			t.Fatalf("it changes something: %+v", did)
		}
		if could.Decision != schema.Stop && could.Rewritten(event) != nil && did.ExecutedHooks[0].Outcome != schema.Errored {
			t.Fatalf("its change is dropped and not an error: %+v", did)
		}
	})
}

// An unknown kind of outcome from a newer worker is a failure like others.
func TestAnUnknownKindOfOutcomeIsAnError(t *testing.T) {
	for _, failClosed := range []bool{false, true} {
		h := schema.Hook{Name: "h", Event: schema.PreToolUse, FailClosed: failClosed}
		got := dispatch.Settle(&h, &schema.Outcome{Kind: "vanished", Result: schema.Allowed()})
		want := schema.None
		if failClosed {
			want = schema.Deny
		}
		if got.Decision != want || got.ExecutedHooks[0].Outcome != schema.Errored || len(got.HookErrors) != 1 {
			t.Errorf("fail_closed %t: %+v", failClosed, got)
		}
	}
}

// A result that passes the fast check does not end a chain or change an event.
func TestTheFastCheckAgreesWithSettle(t *testing.T) {
	if !dispatch.Goes(&schema.Outcome{Result: schema.Allowed()}) {
		t.Error("an allow does not pass the fast check")
	}
	rapid.Check(t, func(t *rapid.T) {
		event := gen.EventTypes().Draw(t, "event")
		h := gen.Hooks(event, gen.Shape{}).Draw(t, "hook")
		o := outcome(0, gen.Answers(h.Event).Draw(t, "answer"))
		if rapid.Bool().Draw(t, "plain") {
			o.Result = schema.Result{Decision: o.Result.Decision, Reason: o.Result.Reason}
		}
		if !dispatch.Goes(o) {
			return
		}
		v := dispatch.Settle(&h, o)
		if h.Event.Terminal(v.Decision) || v.Rewritten(h.Event) != nil || v.ExecutedHooks[0].Outcome != schema.OK {
			t.Fatalf("%+v", v)
		}
	})
}

// Foreign words in errors are shortened.
func TestForeignWordsInErrorsAreShortened(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	h := schema.Hook{Name: "h", Event: schema.PreToolUse}
	got := dispatch.Settle(&h, &schema.Outcome{Kind: schema.Errored, Error: long, Result: schema.Result{
		Decision:   schema.Decision(long[:1<<16]),
		Injections: []schema.Injection{{Content: "x", Strategy: schema.Strategy(long[:1<<16])}},
	}})
	if len(got.HookErrors) != 3 {
		t.Errorf("%d errors, want one each for the failure, the decision and the strategy", len(got.HookErrors))
	}
	if slices.ContainsFunc(got.HookErrors, func(s string) bool { return len(s) > schema.MaxReason+100 }) {
		t.Error("an error is longer than what the fabric passes on")
	}
}
