package aggregator_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// ends returns a delivery hook at the end of a turn with the option at_end.
func ends(handler, atEnd string) schema.Hook {
	return stage(handler, schema.BeforeFinalResponse, func(h *schema.Hook) {
		if atEnd != "" {
			h.Options = map[string]any{"at_end": atEnd}
		}
	})
}

func TestWhatWaitsAtTheEndOfATurnHasTheAgentGoOn(t *testing.T) {
	rewrites := schema.Result{Value: jsontext.Value(`"shorter"`), Effects: []jsontext.Value{jsontext.Value(`{"set_flag":{"seen":true}}`)}}
	for name, c := range map[string]struct {
		result schema.Result
		hooks  []schema.Hook
		want   schema.Decision
		reason string
		items  int
	}{
		"no hook has an opinion":   {schema.Result{}, []schema.Hook{ends(schema.HumanInput, ""), ends(schema.MidStreamInjection, "")}, schema.Retry, "3 messages arrived", 3},
		"one message":              {schema.Result{}, []schema.Hook{ends(schema.MidStreamInjection, "retry")}, schema.Retry, "1 message arrived", 1},
		"a rewritten last message": {rewrites, []schema.Hook{ends(schema.HumanInput, "")}, schema.Retry, "2 messages arrived", 2},
		"a retry of a hook":        {schema.Result{Decision: schema.Retry, Reason: "tests are red"}, []schema.Hook{ends(schema.HumanInput, "")}, schema.Retry, "tests are red", 2},
		"a fail":                   {schema.Result{Decision: schema.Fail, Reason: "no"}, []schema.Hook{ends(schema.HumanInput, "")}, schema.Fail, "no", 0},
		"a stop":                   {schema.Result{Decision: schema.Stop, Value: jsontext.Value(`"x"`)}, []schema.Hook{ends(schema.HumanInput, "")}, schema.Stop, "", 0},
		"it is told and no more":   {schema.Result{}, []schema.Hook{ends(schema.HumanInput, "tell")}, schema.Continue, "", 2},
		"it waits":                 {schema.Result{}, []schema.Hook{ends(schema.HumanInput, "wait")}, schema.Continue, "", 0},
		"one of two holds it":      {schema.Result{}, []schema.Hook{ends(schema.HumanInput, "tell"), ends(schema.MidStreamInjection, "")}, schema.Retry, "1 message arrived", 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				f := remembering(t, m, library{"says": says(c.result)},
					append(c.hooks, hook("says", at(schema.BeforeFinalResponse), func(h *schema.Hook) { h.Readonly = false }))...)
				m.put(human("one"))
				m.put(human("two"))
				m.put(&schema.Item{Source: "ci", Content: "red"})
				v := f.ask(event(schema.BeforeFinalResponse))
				items := 0
				for _, in := range v.Injections {
					items += max(1, len(in.Sequences))
				}
				if v.Decision != c.want || !strings.HasPrefix(v.Reason, c.reason) || items != c.items {
					t.Errorf("%q because %q, with %d items; want %q because %q, with %d\n%+v", v.Decision, v.Reason, items, c.want, c.reason, c.items, v)
				}
				if v.Decision == schema.Retry && (v.Value != nil || v.Effects != nil) {
					t.Errorf("a turn that goes on has %s and %s", v.Value, v.Effects)
				}
			})
		})
	}
}

// The trail says which hook it was, and the event asked again comes to the same.
func TestAnEndThatIsPutOffSaysByWhomAndSaysSoAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, ends(schema.HumanInput, ""), ends(schema.MidStreamInjection, "tell"))
		m.put(human("stop"))
		m.put(&schema.Item{Source: "ci", Content: "red"})
		for attempt := 1; attempt <= 2; attempt++ {
			v := f.ask(with(event(schema.BeforeFinalResponse), eventID, attempt))
			want(t, v, schema.Retry, "human_input:ok mid_stream_injection:ok")
			if v.ExecutedHooks[0].Decision != schema.Retry || v.ExecutedHooks[1].Decision != schema.None || len(v.Injections) != 2 {
				t.Errorf("attempt %d: %+v", attempt, v)
			}
		}
	})
}

// TestWhatAMutedEndLeavesWaitsForTheNextTurn checks that the end of a turn without delivery takes
// no items, and that they come with the next event.
func TestWhatAMutedEndLeavesWaitsForTheNextTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		f := remembering(t, m, library{}, ends(schema.HumanInput, ""), stage(schema.HumanInput, schema.PostToolUse))
		m.put(human("stop"))
		e := event(schema.BeforeFinalResponse)
		e.Header.Set(schema.HeaderDeliver, schema.DeliverNone)
		want(t, f.ask(e), schema.Continue, "")
		if got := listInjections(f.ask(with(event(schema.PostToolUse), id(2), 1))); got != "human_input/human/1" {
			t.Errorf("then it is told %q", got)
		}
	})
}
