package model_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/schema"
)

func raw(s string) jsontext.Value { return jsontext.Value(s) }

// script has answers by hook name; a hook that it does not list has no opinion.
type script map[string]schema.Result

func (s script) ask(h schema.Hook, _ schema.Event) model.Answer {
	return model.Answer{Result: s[h.Name]}
}

func bash() schema.Event {
	return schema.Event{HookType: schema.PreToolUse, AgentID: "a", ToolName: "Bash", ToolInput: raw(`{"n":0}`)}
}

func pre(name string) schema.Hook { return schema.Hook{Name: name, Event: schema.PreToolUse} }

func reader(name string) schema.Hook {
	h := pre(name)
	h.Readonly = true
	return h
}

func config(hooks ...schema.Hook) schema.Config { return schema.Config{Version: 3, Hooks: hooks} }

// told lists the hooks that were called, and the input of each.
func told(calls []model.Call) string {
	var out []string
	for _, c := range calls {
		out = append(out, fmt.Sprintf("%s%s", c.Hook, c.Input.ToolInput))
	}
	return strings.Join(out, " ")
}

func TestNothingMatchesIsNoOpinionOfTheNewestConfig(t *testing.T) {
	got := model.Judge(config(schema.Hook{Name: "x", Event: schema.QueryEnd}), bash(), script{}.ask, model.Options{Unreadable: true})
	if d := cmp.Diff(schema.Verdict{ConfigVersion: 3}, got.Verdict); d != "" || len(got.Calls) != 0 {
		t.Errorf("calls %v, verdict (-want +got):\n%s", got.Calls, d)
	}
}

func TestAForgedToolIsDeniedAlsoWhereNoHookIsConcerned(t *testing.T) {
	if got := model.Judge(config(), bash(), script{}.ask, model.Options{Forged: true}); got.Decision != schema.Deny {
		t.Errorf("verdict %+v", got.Verdict)
	}
}

func TestRewritesChainAndEachHookSeesTheInputAsThoseBeforeLeftIt(t *testing.T) {
	answers := script{"a": schema.Rewritten(raw(`{"n":1}`)), "c": schema.Rewritten(raw(`{"n":2}`))}
	got := model.Judge(config(pre("a"), pre("b"), pre("c"), pre("d")), bash(), answers.ask, model.Options{})
	if want := `a{"n":0} b{"n":1} c{"n":1} d{"n":2}`; told(got.Calls) != want {
		t.Errorf("asked %s, want %s", told(got.Calls), want)
	}
	if string(got.UpdatedInput) != `{"n":2}` || got.Decision != schema.None {
		t.Errorf("verdict %+v", got.Verdict)
	}
}

func TestHooksBehindATerminalResultDoNotRunAndWhatCameBeforeStays(t *testing.T) {
	answers := script{
		"a": {Decision: schema.Ask, Reason: "sure?", UpdatedInput: raw(`{"n":1}`), Injections: []schema.Injection{{Content: "note"}}, HookErrors: []string{"odd"}},
		"b": schema.Denied("no"),
		"c": schema.Denied("too late"),
	}
	got := model.Judge(config(pre("a"), pre("b"), pre("c")), bash(), answers.ask, model.Options{})
	want := schema.Verdict{
		Decision: schema.Deny, Reason: "no", ConfigVersion: 3,
		Injections:    []schema.Injection{{Content: "note", Strategy: schema.ToolResult, Hook: "a"}},
		HookErrors:    []string{`hook "a": odd`},
		ExecutedHooks: []schema.ExecutedHook{{Hook: "a", Decision: schema.Ask, Reason: "sure?", Outcome: schema.OK}, {Hook: "b", Decision: schema.Deny, Reason: "no", Outcome: schema.OK}},
	}
	if d := cmp.Diff(want, got.Verdict); d != "" {
		t.Errorf("verdict (-want +got):\n%s", d)
	}
	if told(got.Calls) != `a{"n":0} b{"n":1}` || len(got.Beside) != 0 {
		t.Errorf("asked %s, beside %s", told(got.Calls), told(got.Beside))
	}
}

func TestReadonlyNeighboursMayRunBesideTheOneThatEndsTheChain(t *testing.T) {
	shadow := reader("s")
	shadow.Mode = schema.Shadow
	answers := script{"b": schema.Denied("no"), "c": schema.Denied("me too"), "s": schema.Denied("in the dark")}
	cfg := config(reader("a"), reader("b"), shadow, reader("c"), pre("d"), reader("e"))
	got := model.Judge(cfg, bash(), answers.ask, model.Options{})
	if told(got.Calls) != `a{"n":0} b{"n":0}` || told(got.Beside) != `c{"n":0}` {
		t.Errorf("asked %s, beside %s", told(got.Calls), told(got.Beside))
	}
	if d := cmp.Diff([]string{"s"}, got.Shadow); d != "" || len(got.ExecutedHooks) != 2 || got.Reason != "no" {
		t.Errorf("shadow %v, verdict %+v", got.Shadow, got.Verdict)
	}
}

func TestTheFirstAskBeatsEveryAllowAndTakesTheirConsentBack(t *testing.T) {
	a := pre("a")
	a.AutoApprove = true
	answers := script{"a": {Decision: schema.Allow, Reason: "fine"}, "b": schema.Asked("first"), "c": schema.Asked("second")}
	got := model.Judge(config(a, pre("b"), pre("c"), pre("d")), bash(), answers.ask, model.Options{})
	if got.Decision != schema.Ask || got.Reason != "first" || got.AutoApprove {
		t.Errorf("verdict %+v", got.Verdict)
	}
	got = model.Judge(config(a, pre("d")), bash(), answers.ask, model.Options{})
	if got.Decision != schema.Allow || got.Reason != "fine" || !got.AutoApprove {
		t.Errorf("verdict %+v", got.Verdict)
	}
}

func TestAfterAToolNothingIsDropped(t *testing.T) {
	e := schema.Event{HookType: schema.PostToolUse, AgentID: "a", ToolName: "Bash", ToolOutput: raw(`"all"`)}
	post := func(name string) schema.Hook { return schema.Hook{Name: name, Event: schema.PostToolUse} }
	answers := script{
		"a": {Decision: schema.Deny, Reason: "first", UpdatedOutput: raw(`"cut"`)},
		"b": {Decision: schema.Deny, Reason: "second", Injections: []schema.Injection{{Content: "x"}}},
		"c": {Decision: schema.Fail, Reason: "worse"},
		"d": {UpdatedOutput: raw(`"gone"`)},
	}
	got := model.Judge(config(post("a"), post("b"), post("c"), post("d")), e, answers.ask, model.Options{})
	if got.Decision != schema.Fail || got.Reason != "worse" || string(got.UpdatedOutput) != `"gone"` {
		t.Errorf("verdict %+v", got.Verdict)
	}
	want := []schema.Injection{
		{Content: "x", Strategy: schema.ToolResult, Hook: "b"},
		{Content: "first", Strategy: schema.ToolResult, Hook: "a"}, {Content: "second", Strategy: schema.ToolResult, Hook: "b"},
	}
	if len(got.ExecutedHooks) != 4 || cmp.Diff(want, got.Injections) != "" || string(got.Calls[1].Input.ToolOutput) != `"cut"` {
		t.Errorf("trail %+v, injections %+v", got.ExecutedHooks, got.Injections)
	}
}

func TestAFalseConditionAsksNobodyAndABrokenOneCountsAsTrue(t *testing.T) {
	conditional := func(name string) schema.Hook {
		h := pre(name)
		h.When = name
		return h
	}
	o := model.Options{When: func(condition string, e schema.Event) (bool, error) {
		switch condition {
		case "broken":
			return false, errors.New("no such field")
		case "current":
			return string(e.ToolInput) == `{"n":1}`, nil
		}
		return false, nil
	}}
	cfg := config(conditional("false"), conditional("broken"), pre("rewriter"), conditional("current"))
	got := model.Judge(cfg, bash(), script{"rewriter": schema.Rewritten(raw(`{"n":1}`))}.ask, o)
	if want := `broken{"n":0} rewriter{"n":0} current{"n":1}`; told(got.Calls) != want || len(got.HookErrors) != 0 {
		t.Errorf("asked %s, want %s; errors %q", told(got.Calls), want, got.HookErrors)
	}
}

func TestWhatCanNotBeJudged(t *testing.T) {
	closed := func(e schema.EventType) schema.Hook { return schema.Hook{Name: "h", Event: e, FailClosed: true} }
	open := func(e schema.EventType) schema.Hook { return schema.Hook{Name: "h", Event: e} }
	dark := closed(schema.PreToolUse)
	dark.Mode = schema.Shadow
	forged, unreadable := model.Options{Forged: true}, model.Options{Unreadable: true}
	for _, c := range []struct {
		sentence string
		hook     schema.Hook
		o        model.Options
		want     schema.Decision
	}{
		{"a forged tool is denied whatever the policy", open(schema.PreToolUse), forged, schema.Deny},
		{"a forged prompt is denied whatever the policy", open(schema.UserPromptSubmit), forged, schema.Deny},
		{"elsewhere a forged event goes on unjudged", open(schema.BeforeLLMCall), forged, schema.None},
		{"unless it is guarded", closed(schema.BeforeLLMCall), forged, schema.Fail},
		{"an unreadable event is denied where it is guarded", closed(schema.PreToolUse), unreadable, schema.Deny},
		{"and goes on where it is not", open(schema.PreToolUse), unreadable, schema.None},
		{"after the tool there is nothing left to deny", closed(schema.PostToolUse), unreadable, schema.None},
		{"shadow hooks guard nothing", dark, unreadable, schema.None},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			e := bash()
			e.HookType = c.hook.Event
			got := model.Judge(config(c.hook), e, script{}.ask, c.o)
			if got.Decision != c.want || len(got.Calls) != 0 {
				t.Errorf("decision %q, want %q; asked %s", got.Decision, c.want, told(got.Calls))
			}
			if said := got.Reason != "" || len(got.HookErrors) > 0; said != (c.hook.Mode != schema.Shadow) {
				t.Errorf("said %q %q", got.Reason, got.HookErrors)
			}
		})
	}
}
