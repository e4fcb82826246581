package loop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/schema"
)

// All faults of registrations are reported together before the model is called, each with
// what to write. Removing the hook removes its fault.
func TestFaultyHooksAreReportedBeforeTheModelIsCalled(t *testing.T) {
	nothing := func(context.Context, *loop.Status) error { return nil }
	for sentence, register := range map[string]func(l *loop.Loop) *loop.Hook{
		`it decides "retry"; at BeforeLLMCall write one of continue, fail, stop`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.BeforeLLMCall).Handle(schema.Retry)
		},
		`it decides "retry"; at PostToolUse write one of continue, deny, fail, stop`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.PostToolUse).Handle(schema.Retry, loop.WithValue(schema.ToolOutcome{}))
		},
		`it decides stop without a value; at QueryEnd a stop carries a loop.Response`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.QueryEnd).Handle(schema.Stop)
		},
		`it decides "reject"; at UserPromptSubmit write one of continue, deny`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.UserPromptSubmit).Handle(schema.Reject)
		},
		`it decides "maybe"; at PreToolUse write one of continue, allow, ask, deny, fail, stop`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.PreToolUse).Handle("maybe")
		},
		`unknown event "Never"; write one of`: func(l *loop.Loop) *loop.Hook { return l.On("Never").Handle(schema.Continue) },
		`no query reaches SessionStart`:       func(l *loop.Loop) *loop.Hook { return l.On(schema.SessionStart).Handle(schema.Continue) },
		`no query reaches SessionEnd`:         func(l *loop.Loop) *loop.Hook { return l.On(schema.SessionEnd).Handle(schema.Continue) },
		`it decides stop without a value; at BeforeLLMCall a stop carries a schema.Message`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.BeforeLLMCall).Handle(schema.Stop)
		},
		`it decides stop without a value; at PreToolUse a stop carries a schema.ToolOutcome`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.PreToolUse).Handle(schema.Stop)
		},
		`it has a value of type schema.ToolCall; at AfterLLMCall the value is a schema.Message`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.AfterLLMCall).Handle(schema.Continue, loop.WithValue(schema.ToolCall{}))
		},
		`it has a value of type schema.ToolCall; at PreToolUse the value of a stop is a schema.ToolOutcome`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.PreToolUse).Handle(schema.Stop, loop.WithValue(schema.ToolCall{}))
		},
		`it has a value of type schema.Message; at PreToolUse the value is a schema.ToolCall`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.PreToolUse).Handle(schema.Continue, loop.WithValue(schema.Message{}))
		},
		`it has a value of type schema.Message; at BeforeLLMCall only a stop has a value`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.BeforeLLMCall).Handle(schema.Continue, loop.WithValue(schema.Message{}))
		},
		`it has a value of type loop.Response; at UserPromptSubmit hooks have no value`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.UserPromptSubmit).Handle(schema.Continue, loop.WithValue(loop.Response{}))
		},
		`it has a value of type schema.Message; at QueryEnd the value is a loop.Response`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.QueryEnd).Handle(schema.Continue, loop.WithValue(schema.Message{}))
		},
		`effect 2: append_message has no content`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.BeforeLLMCall).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(nothing), loop.Append("", "")))
		},
		`effect 1: drop_messages picks nothing`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.BeforeLLMCall).Handle(schema.Continue, loop.WithEffects(loop.DropMessages(schema.DropMessages{})))
		},
		`effect 1: the flag "f" cannot be written as JSON`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.BeforeLLMCall).Handle(schema.Continue, loop.WithEffects(loop.SetFlag("f", make(chan int))))
		},
		`effect 1: it is nil`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.BeforeLLMCall).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(nil)))
		},
		`its value's function is nil`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.AfterLLMCall).Handle(schema.Continue, loop.WithValueFunc[schema.Message](nil))
		},
		`a condition is nil`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.AfterLLMCall).When(nil).Handle(schema.Continue)
		},
		`Within is not positive`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.AfterLLMCall).Within(-time.Second).Handle(schema.Continue)
		},
		`the injection's strategy is "shout"; write tool_result or user_message`: func(l *loop.Loop) *loop.Hook {
			return l.On(schema.PostToolUse).Handle(schema.Continue, loop.WithInjection("hey", "shout"))
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			model := &script{turns: []schema.Message{says("done")}}
			l := start(t, loop.Options{Model: model})
			l.On(schema.BeforeLLMCall).Named("another").Handle(schema.Deny)
			h := register(l)
			_, err := l.Run(t.Context(), "go")
			for _, part := range []string{sentence, h.Name(), `hook "another": it decides "deny"`} {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %v", part, err)
				}
			}
			if len(model.asked) != 0 {
				t.Error("the model was called")
			}
			h.Remove()
			if err := l.Check(); err == nil || strings.Contains(err.Error(), sentence) {
				t.Errorf("removed, and still: %v", err)
			}
		})
	}
}

func TestNewReportsAllFaultsOfTheOptions(t *testing.T) {
	_, err := loop.New(loop.Options{Parallel: -1, Tools: []loop.Tool{{}, adding(), adding(), {Name: "idle"},
		loop.ToolFunc("text", "", func(context.Context, string) (string, error) { return "", nil })}})
	for _, part := range []string{"Options.Agent", "Options.Model", "negative", "tool 1 has no name", `two tools "add"`, `"idle" has no Call`,
		`the input of the tool "text" is a string, not an object`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

func TestARemovedHookIsNotAsked(t *testing.T) {
	l := start(t, loop.Options{Model: &script{turns: []schema.Message{says("one"), says("two")}}})
	var ran []string
	hook := func(name string) *loop.Hook {
		return l.On(schema.AfterLLMCall).Named(name).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(context.Context, *loop.Status) error {
			ran = append(ran, name)
			return nil
		})))
	}
	a, _ := hook("a"), hook("b")
	if _, err := l.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	a.Remove()
	a.Remove()
	if _, err := l.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	same(t, "hooks that ran", []string{"a", "b", "b"}, ran)
}

func TestALoopRunsOneQueryAtATime(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{})
	l := start(t, loop.Options{Model: loop.ModelFunc(func(context.Context, *loop.Request) (schema.Message, error) {
		close(begun)
		<-release
		return says("done"), nil
	})})
	done := make(chan error)
	go func() { _, err := l.Run(t.Context(), "one"); done <- err }()
	<-begun
	if _, err := l.Run(t.Context(), "two"); !errors.Is(err, loop.ErrRunning) {
		t.Errorf("the second query: %v", err)
	}
	if err := l.NewConversation(); !errors.Is(err, loop.ErrRunning) {
		t.Errorf("a new conversation: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	same(t, "conversation", []string{"user: one", "assistant: done"}, talk(l.History()))
	if err := l.NewConversation(); err != nil || len(l.History()) != 0 {
		t.Errorf("%v, %q", err, talk(l.History()))
	}
}

func TestAToolsSchemaIsMadeFromItsInput(t *testing.T) {
	type place struct {
		City string `json:"city" description:"where"`
		Zip  *int   `json:"zip"`
	}
	type in struct {
		Place place              `json:"place"`
		Days  []int              `json:"days,omitzero"`
		Odds  map[string]float64 `json:"odds"`
		Day   time.Time          `json:"day"`
		Sure  bool
		Any   jsonValue `json:"any,omitempty"`
		Left  string    `json:"-"`
	}
	tool := loop.ToolFunc("t", "", func(context.Context, in) (int, error) { return 0, nil })
	var got, want any
	if err := schema.Unmarshal(tool.Schema, &got); err != nil {
		t.Fatal(err)
	}
	if err := schema.Unmarshal([]byte(`{"type":"object","required":["place","odds","day","Sure"],"properties":{
		"place":{"type":"object","required":["city"],"properties":{"city":{"type":"string","description":"where"},"zip":{"type":"integer"}}},
		"days":{"type":"array","items":{"type":"integer"}},"odds":{"type":"object","additionalProperties":{"type":"number"}},
		"day":{"type":"string"},"Sure":{"type":"boolean"},"any":{}}}`), &want); err != nil {
		t.Fatal(err)
	}
	same(t, "schema", want, got)
}
