package fabric_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// flowing is what a hook may replace at an event: how it is found, and how a new one
// is written. A tool's input is an object; here all others are texts.
func flowing(e *schema.Event) (text string, write func(string) jsontext.Value) {
	plain := func(s string) jsontext.Value { return jsontext.Value(fmt.Sprintf("%q", s)) }
	bare := func(v jsontext.Value) string { return strings.Trim(string(v), `"`) }
	switch e.HookType {
	case schema.PreToolUse:
		text, _ = strings.CutPrefix(string(e.ToolInput), `{"n":`)
		return strings.Trim(strings.TrimSuffix(text, "}"), `"`), func(s string) jsontext.Value { return jsontext.Value(fmt.Sprintf(`{"n":%q}`, s)) }
	case schema.PostToolUse, schema.ToolError:
		return bare(e.ToolOutput), plain
	case schema.QueryEnd:
		return bare(e.Response), plain
	}
	return bare(e.Message), plain
}

// saw is the effect of a hook of the chain: a flag with what it was shown.
func saw(hook, text string) jsontext.Value {
	return jsontext.Value(fmt.Sprintf(`{"set_flag":{%q:%q}}`, hook, text))
}

// appends is a hook that adds its name to what flows by, and decides that.
func appends(name string, d schema.Decision) func(context.Context, *schema.Event) (schema.Result, error) {
	return func(_ context.Context, e *schema.Event) (schema.Result, error) {
		text, write := flowing(e)
		return schema.Result{Decision: d, Reason: name, Value: write(text + name), Effects: []jsontext.Value{saw(name, text)}}, nil
	}
}

// looks is a hook that changes nothing.
func looks(name string) func(context.Context, *schema.Event) (schema.Result, error) {
	return func(_ context.Context, e *schema.Event) (schema.Result, error) {
		text, _ := flowing(e)
		return schema.Result{Effects: []jsontext.Value{saw(name, text)}}, nil
	}
}

// chain is six hooks of two pools: three that rewrite, one that ends the chain where
// something can, and readers among them.
func chain(end schema.Decision) (yaml string, west, east handlers) {
	const (
		rewriter = `type: builtin, handler: %s, pool: %s, readonly: false`
		reader   = `type: builtin, handler: %s, pool: %s, readonly: true`
	)
	yaml = everywhere(
		fmt.Sprintf(rewriter, "a", "go"), fmt.Sprintf(reader, "r", "go"), fmt.Sprintf(reader, "s", "east"), fmt.Sprintf(rewriter, "b", "east"),
		fmt.Sprintf(rewriter, "end", "go"), fmt.Sprintf(reader, "t", "east"), fmt.Sprintf(rewriter, "c", "go"),
	)
	west = handlers{"a": appends("a", ""), "r": looks("r"), "end": appends("end", end), "c": appends("c", "")}
	east = handlers{"s": looks("s"), "b": appends("b", ""), "t": looks("t")}
	return yaml, west, east
}

// rewritten is what of a verdict stands for what flowed by.
func rewritten(v *schema.Verdict, t schema.EventType) string {
	e := &schema.Event{HookType: t}
	e.Apply(v.Rewritten(t))
	text, _ := flowing(e)
	return text
}

// flows are the events at which something may be replaced.
var flows = []schema.EventType{
	schema.AfterLLMCall, schema.PreToolUse, schema.PostToolUse, schema.ToolError, schema.BeforeFinalResponse, schema.QueryEnd,
}

func effectsOf(v *schema.Verdict) (all []string) {
	for _, e := range v.Effects {
		all = append(all, string(e))
	}
	return all
}

// Each hook gets the value that the previous ones left, in any pool, and the effects are in the order of the hooks.
func TestValuesAndEffectsChainOverHooksAndPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yaml, west, east := chain("")
		f := start(t, yaml)
		f.offerIn("east", "e", east)
		f.serve("w", west)
		a := f.agent("agent1")
		for _, e := range flows {
			ask, want := momentOf(e), "0abendc"
			if e == schema.ToolError {
				ask.ToolOutput = jsontext.Value(`"0"`)
			}
			v := a.ask(ask)
			if got := rewritten(v, e); got != want || len(v.HookErrors) != 0 {
				t.Errorf("%s: 0 became %q, not %q; %q", e, got, want, v.HookErrors)
			}
			effects := []string{
				string(saw("a", "0")), string(saw("r", "0a")), string(saw("s", "0a")), string(saw("b", "0a")),
				string(saw("end", "0ab")), string(saw("t", "0abend")), string(saw("c", "0abend")),
			}
			if got := effectsOf(v); !slices.Equal(got, effects) {
				t.Errorf("%s: the effects are\n%s, not\n%s", e, got, effects)
			}
		}
	})
}

// A result that ends a chain keeps only the texts of earlier hooks, adds its own effects, and later hooks do not run.
// After a tool and at the end of a query all earlier results stay, and only a stop ends the chain.
func TestAResultThatEndsAChainAddsOnlyItsOwnEffects(t *testing.T) {
	ends := map[schema.EventType][]schema.Decision{
		schema.AfterLLMCall: {schema.Retry, schema.Fail, schema.Stop}, schema.BeforeFinalResponse: {schema.Retry, schema.Fail, schema.Stop},
		schema.PreToolUse: {schema.Deny, schema.Fail, schema.Stop}, schema.PostToolUse: {schema.Deny, schema.Fail, schema.Stop},
		schema.ToolError: {schema.Deny, schema.Fail, schema.Stop}, schema.QueryEnd: {schema.Fail, schema.Stop},
	}
	for _, d := range []schema.Decision{schema.Retry, schema.Fail, schema.Stop, schema.Deny} {
		t.Run(string(d), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				yaml, west, east := chain(d)
				f := start(t, yaml)
				f.offerIn("east", "e", east)
				f.serve("w", west)
				a := f.agent("agent1")
				for _, e := range flows {
					if !slices.Contains(ends[e], d) {
						continue
					}
					ask := momentOf(e)
					if e == schema.ToolError {
						ask.ToolOutput = jsontext.Value(`"0"`)
					}
					checkEnd(t, a.ask(ask), e, d)
				}
			})
		})
	}
}

func checkEnd(t *testing.T, v *schema.Verdict, e schema.EventType, d schema.Decision) {
	t.Helper()
	asked, effects, text := 5, []string{string(saw("end", "0ab"))}, ""
	if e == schema.PostToolUse || e == schema.ToolError || e == schema.QueryEnd {
		asked, text = 7, "0abendc"
		effects = []string{
			string(saw("a", "0")), string(saw("r", "0a")), string(saw("s", "0a")), string(saw("b", "0a")),
			effects[0], string(saw("t", "0abend")), string(saw("c", "0abend")),
		}
		if d == schema.Stop {
			asked, text, effects = 5, "0abend", effects[:5]
		}
	}
	if v.Decision != d || v.Reason != "end" || len(v.HookErrors) != 0 {
		t.Errorf("%s: decided %q, %q, %q", e, v.Decision, v.Reason, v.HookErrors)
	}
	if got := effectsOf(v); !slices.Equal(got, effects) {
		t.Errorf("%s, %s: the effects are\n%s, not\n%s", e, d, got, effects)
	}
	if got := rewritten(v, e); got != text || len(v.ExecutedHooks) != asked {
		t.Errorf("%s, %s: 0 became %q, not %q, by %d hooks, not %d", e, d, got, text, len(v.ExecutedHooks), asked)
	}
	_, write := flowing(&schema.Event{HookType: e})
	if got := string(v.Value); d == schema.Stop && got != string(write("0abend")) {
		t.Errorf("%s: it stops with %s", e, got)
	}
}
