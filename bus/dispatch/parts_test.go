package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

func TestDroppedPartsAreReported(t *testing.T) {
	flag, other := jsontext.Value(`{"set_flag":{"a":1}}`), jsontext.Value(`{"append_message":{"role":"judge","content":"x"}}`)
	for _, c := range []struct {
		is     string
		event  schema.EventType
		says   schema.Result
		errors []string
		kept   int // effects
		// faulty means that it is an error of a fail-closed hook.
		faulty bool
	}{
		{"an unknown effect", schema.BeforeLLMCall, schema.Result{Effects: []jsontext.Value{flag, other, flag}},
			[]string{`effect dropped: append_message has the role "judge"; write system, user or assistant`}, 2, true},
		{"as many effects as there may be", schema.QueryEnd, schema.Result{Effects: slices.Repeat([]jsontext.Value{flag}, schema.MaxEffects)}, nil, 64, false},
		{"too many effects", schema.QueryEnd, schema.Result{Effects: slices.Repeat([]jsontext.Value{flag}, schema.MaxEffects+9)},
			[]string{"the answer has 73 effects; only the first 64 apply"}, 64, true},
		{"a value that is no input", schema.PreToolUse, schema.Result{Value: jsontext.Value(`"x"`)},
			[]string{"value dropped: it must be the tool's whole input as a JSON object"}, 0, true},
		{"a value beside a new input", schema.PreToolUse, schema.Result{Value: jsontext.Value(`{}`), UpdatedInput: jsontext.Value(`{}`)},
			[]string{"value dropped: updated_input already replaces the tool's input"}, 0, false},
		{"a value beside a new output", schema.PostToolUse, schema.Result{Value: jsontext.Value(`1`), UpdatedOutput: jsontext.Value(`2`)},
			[]string{"value dropped: updated_output already replaces the tool's output"}, 0, false},
		{"a value before the model is called", schema.BeforeLLMCall, schema.Result{Value: jsontext.Value(`"x"`)},
			[]string{"value dropped: at BeforeLLMCall only a stop has a value"}, 0, false},
		{"a value when a session starts", schema.SessionStart, schema.Result{Value: jsontext.Value(`"x"`)},
			[]string{"value dropped: a hook at SessionStart cannot set a value"}, 0, false},
		{"a value that is no message", schema.AfterLLMCall, schema.Result{Value: jsontext.Value(`[]`)},
			[]string{"value dropped: a message must be a string, or an object whose role is not system, user or tool"}, 0, true},
		{"a user's message", schema.BeforeFinalResponse, schema.Result{Value: jsontext.Value(`{"role":"user","content":"x"}`)},
			[]string{"value dropped: a message must be a string, or an object whose role is not system, user or tool"}, 0, true},
	} {
		for _, closes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fail_closed %t", c.is, closes), func(t *testing.T) {
				h := hook("h", at(c.event))
				h.FailClosed = closes
				decision, outcome := schema.None, schema.OK
				if closes && c.faulty {
					decision, outcome = c.event.Blocking(), schema.Errored
				}
				v := dispatch.Settle(&h, &schema.Outcome{Result: c.says})
				if v.Decision != decision || v.ExecutedHooks[0].Outcome != outcome || len(v.Effects) != c.kept || len(v.HookErrors) != len(c.errors) {
					t.Fatalf("%q, %q, %d effects, %q", v.Decision, v.ExecutedHooks[0].Outcome, len(v.Effects), v.HookErrors)
				}
				if v.Decision == schema.None && (v.UpdatedInput == nil) != (c.says.UpdatedInput == nil) {
					t.Errorf("the input becomes %s", v.UpdatedInput)
				}
				for i, want := range c.errors {
					if !strings.HasSuffix(v.HookErrors[i], want) {
						t.Errorf("the error is %q, not %q", v.HookErrors[i], want)
					}
				}
			})
		}
	}
	h := hook("h", at(schema.PostToolUse), readonly)
	v := dispatch.Settle(&h, &schema.Outcome{Result: schema.Result{Value: jsontext.Value(`1`)}})
	if v.UpdatedOutput != nil || v.ExecutedHooks[0].Outcome != schema.Errored || !strings.Contains(v.ExecutedHooks[0].Error, "value dropped: the hook is readonly") {
		t.Errorf("a readonly hook's value: %+v", v)
	}
}
