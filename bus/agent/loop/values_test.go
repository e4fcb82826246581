package loop_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// QueryEnd hooks may change the answer, but not how the query ended.
func TestQueryEndHooksChangeOnlyTheAnswer(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{
		"a text":              {`"mended"`, "mended"},
		"an object":           {`{"content":"mended","status":"stopped","error":"no","iterations":9}`, "mended"},
		"a message":           {`{"message":{"role":"user","content":"mended","tool_calls":[{"name":"x"}]}}`, "mended"},
		"an unreadable value": {`{"content":7}`, "done"},
		"a number":            {`7`, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, on(schema.QueryEnd, func(_ *schema.Event, v *schema.Verdict) { v.Value = jsontext.Value(c.value) }))
				l := start(t, loop.Options{Fabric: f.client, Model: &script{turns: []schema.Message{says("done")}}})
				answer, err := l.Run(t.Context(), "go")
				if err != nil || answer.Content != c.want || answer.Message.Content != c.want || answer.Message.Role != schema.RoleAssistant ||
					len(answer.Message.ToolCalls) != 0 || answer.Status != loop.Answered || answer.Error != "" || answer.Iterations != 1 {
					t.Errorf("%+v, %v", answer, err)
				}
			})
		})
	}
	t.Run("in the program", func(t *testing.T) {
		l := start(t, loop.Options{Model: &script{turns: []schema.Message{says("done")}}})
		l.On(schema.QueryEnd).Handle(schema.Continue, loop.WithValueFunc(func(_ context.Context, _ *loop.Status, r loop.Response) (loop.Response, error) {
			r.Content, r.Status, r.Error = "mended", loop.Failed, "no"
			return r, nil
		}))
		answer, err := l.Run(t.Context(), "go")
		if err != nil || answer.Content != "mended" || answer.Message.Content != "mended" || answer.Status != loop.Answered || answer.Error != "" {
			t.Errorf("%+v, %v", answer, err)
		}
	})
}

// The value of the fabric's stop is a message at events of the model, and a result before
// a tool. A text that replaces a message keeps its calls and drops the API's own form.
func TestStopsAndRewritesOfTheFabric(t *testing.T) {
	native := calls("add", `{"a":1,"b":2}`)
	native.Content, native.Native = "secret", jsontext.Value(`{"signed":"secret"}`)
	for name, c := range map[string]struct {
		at     schema.EventType
		judge  func(v *schema.Verdict)
		status loop.Ending
		want   []string
	}{
		"a stop before the model": {schema.BeforeLLMCall, func(v *schema.Verdict) { v.Decision, v.Value = schema.Stop, jsontext.Value(`"cached"`) },
			loop.Stopped, []string{"user: go", "assistant: cached"}},
		"a stop with calls": {schema.AfterLLMCall, func(v *schema.Verdict) {
			v.Decision, v.Value = schema.Stop, jsontext.Value(`{"content":"cached","tool_calls":[{"id":"c9","name":"add"}]}`)
		}, loop.Stopped, []string{"user: go", "assistant: cached"}},
		"a stop without a message": {schema.AfterLLMCall, func(v *schema.Verdict) { v.Decision, v.Value = schema.Stop, jsontext.Value(`7`) },
			loop.Failed, []string{"user: go"}},
		"a result in the tool's place": {schema.PreToolUse, func(v *schema.Verdict) { v.Decision, v.Value = schema.Stop, jsontext.Value(`{"sum":3}`) },
			loop.Answered, []string{"user: go", `assistant: secret[c1 add {"a":1,"b":2}]`, `tool: c1 add {"sum":3}[]`, "assistant: done"}},
		"a text for a message": {schema.AfterLLMCall, func(v *schema.Verdict) { v.Value = jsontext.Value(`"clean"`) },
			loop.Answered, []string{"user: go", `assistant: clean[c1 add {"a":1,"b":2}]`, "tool: c1 add 3[]", "assistant: clean"}},
		"a message for a message": {schema.AfterLLMCall, func(v *schema.Verdict) { v.Value = jsontext.Value(`{"content":"clean"}`) },
			loop.Answered, []string{"user: go", "assistant: clean"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, on(c.at, func(_ *schema.Event, v *schema.Verdict) { c.judge(v) }))
				l := start(t, loop.Options{Fabric: f.client, Model: &script{turns: []schema.Message{native, says("done")}}, Tools: []loop.Tool{adding()}})
				answer, err := l.Run(t.Context(), "go")
				if answer.Status != c.status || (err == nil) == (c.status == loop.Failed) {
					t.Errorf("%+v, %v", answer, err)
				}
				same(t, "conversation", c.want, talk(l.History()))
				for _, m := range l.History() {
					if m.Content == "clean" && m.Native != nil {
						t.Errorf("the API's own form of the rewritten message is still there: %s", m.Native)
					}
				}
			})
		})
	}
}

// Messages are dropped in whole turns, and not while the turn's tools run.
func TestAHookDropsMessages(t *testing.T) {
	model := &script{turns: []schema.Message{calls("add", `{"a":1,"b":2}`), calls("add", `{"a":3,"b":4}`), says("done")}}
	l := start(t, loop.Options{Model: model, Tools: []loop.Tool{adding()}, System: "You add."})
	l.On(schema.PostToolUse).Handle(schema.Continue, loop.WithEffects(loop.Append("", "aside"), loop.DropMessages(schema.DropMessages{First: 9}), loop.SetFlag("n", nil), loop.SetFlag("m", 1)))
	var flags int
	var prompt string
	l.On(schema.BeforeFinalResponse).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(_ context.Context, s *loop.Status) error {
		flags, prompt = len(s.Flags()), s.Prompt()
		return errors.Join(s.Drop(schema.DropMessages{Role: schema.RoleSystem, Containing: "aside", First: 1}), s.SetFlag("m", nil))
	})))
	if _, err := l.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	same(t, "conversation", []string{"system: You add.", "system: aside", `assistant: [c1 add {"a":3,"b":4}]`, "tool: c1 add 7[]", "assistant: done"}, reorder(talk(l.History())))
	same(t, "flags and prompt", []any{1, "go"}, []any{flags, prompt})
}

// reorder moves the remaining aside behind the system prompt, because either order is
// correct.
func reorder(lines []string) []string {
	out := []string{lines[0]}
	for _, want := range []bool{true, false} {
		for _, line := range lines[1:] {
			if (line == "system: aside") == want {
				out = append(out, line)
			}
		}
	}
	return out
}

// api is a model's API that records the tools of its requests.
type api struct{ tools []render.Tool }

func (a *api) Call(_ context.Context, messages []schema.Message, tools []render.Tool) (schema.Message, error) {
	a.tools = tools
	return says(messages[0].Content), nil
}

func TestAClientOfAnAPIIsAModel(t *testing.T) {
	a := &api{}
	l := start(t, loop.Options{Model: loop.LLM(a), Tools: []loop.Tool{adding()}})
	if answer, err := l.Run(t.Context(), "hello"); err != nil || answer.Content != "hello" {
		t.Errorf("%+v, %v", answer, err)
	}
	same(t, "tools", []render.Tool{{Name: "add", Description: "Adds.", Schema: adding().Schema}}, a.tools)
}
