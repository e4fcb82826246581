package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/schema"
)

// diary records what happened, in order.
type diary struct{ lines []string }

func (d *diary) write(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) condition(name string, holds bool, err error) loop.Condition {
	return func(context.Context, *loop.Status) (bool, error) { d.write("%s?", name); return holds, err }
}

func (d *diary) effect(name string, err error) loop.HandleOption {
	return loop.WithEffects(loop.EffectFunc(func(context.Context, *loop.Status) error { d.write("%s!", name); return err }))
}

// value adds to the text of the message.
func (d *diary) value(name string) loop.HandleOption {
	return loop.WithValueFunc(func(_ context.Context, s *loop.Status, m schema.Message) (schema.Message, error) {
		d.write("%s=%s (sees %s)", name, m.Content, s.AssistantMessage.Content)
		m.Content += name
		return m, nil
	})
}

func answered(t *testing.T, text string) (*loop.Loop, *diary) {
	t.Helper()
	return start(t, loop.Options{Model: &script{turns: []schema.Message{says(text), says(text), says(text)}}}), &diary{}
}

// A hook runs condition, effects, value and decision in this order. Hooks run in
// registration order and see the changes of earlier hooks. A hook whose condition is
// false does nothing.
func TestTheOrderWithinAHook(t *testing.T) {
	l, d := answered(t, "x")
	l.On(schema.BeforeFinalResponse).When(d.condition("a", true, nil)).When(d.condition("a2", true, nil)).
		Handle(schema.Continue, d.value("A"), d.effect("a", nil), d.effect("a2", nil))
	l.On(schema.BeforeFinalResponse).When(d.condition("b", false, nil)).When(d.condition("b2", true, nil)).Handle(schema.Fail, d.effect("b", nil), d.value("B"))
	l.On(schema.BeforeFinalResponse).Handle(schema.Continue, d.value("C"))
	l.On(schema.BeforeFinalResponse).When(d.condition("e", true, nil)).Handle(schema.Stop, d.value("E"), loop.WithReason("enough"))
	l.On(schema.BeforeFinalResponse).When(d.condition("never", true, nil)).Handle(schema.Continue)
	answer, err := l.Run(t.Context(), "go")
	if err != nil || answer.Content != "xACE" || answer.Status != loop.Stopped || answer.Reason != "enough" {
		t.Errorf("%+v, %v", answer, err)
	}
	same(t, "order", []string{"a?", "a2?", "a!", "a2!", "A=x (sees x)", "b?", "C=xA (sees xA)", "e?", "E=xAC (sees xAC)"}, d.lines)
}

// A rewrite counts if the chain goes on, and not if a later hook ends it.
func TestARewriteBeforeARetryDoesNotCount(t *testing.T) {
	l, d := answered(t, "x")
	again := true
	l.On(schema.BeforeFinalResponse).Handle(schema.Continue, d.value("A"))
	l.On(schema.BeforeFinalResponse).When(func(context.Context, *loop.Status) (bool, error) {
		defer func() { again = false }()
		return again, nil
	}).Handle(schema.Retry)
	answer, err := l.Run(t.Context(), "go")
	if err != nil || answer.Content != "xA" {
		t.Errorf("%+v, %v", answer, err)
	}
	same(t, "conversation", []string{"user: go", "assistant: x", "assistant: xA"}, talk(l.History()))
}

// A failing open hook counts as silent, but its earlier effects stay. A failing closed
// hook blocks the event.
func TestAFailureFollowsThePolicy(t *testing.T) {
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		register func(r *loop.Registration, d *diary)
		says     string
		lines    []string
	}{
		"an effect that fails": {func(r *loop.Registration, d *diary) {
			r.Handle(schema.Stop, loop.WithValue(says("stopped")), d.effect("one", nil), d.effect("two", boom), d.effect("three", nil))
		}, "effect 2: boom", []string{"one!", "two!"}},
		"an effect that panics": {func(r *loop.Registration, _ *diary) {
			r.Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(context.Context, *loop.Status) error { panic("boom") })))
		}, "panicked: boom", nil},
		"a value that fails": {func(r *loop.Registration, d *diary) {
			r.Handle(schema.Retry, d.effect("one", nil), loop.WithValueFunc(func(context.Context, *loop.Status, schema.Message) (schema.Message, error) {
				return says("lost"), boom
			}))
		}, "its value: boom", []string{"one!"}},
		"a value that cannot be written": {func(r *loop.Registration, _ *diary) {
			r.Handle(schema.Continue, loop.WithValue(schema.Message{Native: []byte(`{`)}))
		}, "", nil},
		"too many flags": {func(r *loop.Registration, _ *diary) {
			r.Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(_ context.Context, s *loop.Status) (err error) {
				for i := range schema.MaxFlags + 1 {
					err = s.SetFlag(fmt.Sprint(i), true)
				}
				return err
			})))
		}, "at most 256", nil},
	} {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fail-closed %v", name, closed), func(t *testing.T) {
				l, d := answered(t, "x")
				r := l.On(schema.AfterLLMCall).Named("faulty")
				if closed {
					r.FailClosed()
				}
				c.register(r, d)
				l.On(schema.AfterLLMCall).Handle(schema.Continue, d.effect("next", nil))
				answer, err := l.Run(t.Context(), "go")
				if closed != errors.Is(err, loop.ErrFailed) || !closed && (err != nil || answer.Content != "x" || answer.Status != loop.Answered) {
					t.Errorf("%+v, %v", answer, err)
				}
				want := slices.Clone(c.lines)
				if !closed {
					want = append(want, "next!")
				}
				same(t, "what ran", want, d.lines)
				if all := strings.Join(answer.HookErrors, "\n"); !strings.Contains(all, `hook "faulty"`) || !strings.Contains(all, c.says) {
					t.Errorf("the hook errors are %q", answer.HookErrors)
				}
			})
		}
	}
}

// A condition that fails counts as true and is reported, under both policies.
func TestAConditionThatFailsCountsAsTrue(t *testing.T) {
	for name, c := range map[string]loop.Condition{
		"an error": func(context.Context, *loop.Status) (bool, error) { return false, errors.New("boom") },
		"a panic":  func(context.Context, *loop.Status) (bool, error) { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			l, d := answered(t, "x")
			l.On(schema.AfterLLMCall).Named("gate").When(c).When(d.condition("next", true, nil)).Handle(schema.Stop, loop.WithValue(says("stopped")))
			answer, err := l.Run(t.Context(), "go")
			if err != nil || answer.Content != "stopped" {
				t.Errorf("%+v, %v", answer, err)
			}
			same(t, "what ran", []string{"next?"}, d.lines)
			if len(answer.HookErrors) != 1 || !strings.Contains(answer.HookErrors[0], `hook "gate": its condition failed and counts as true`) ||
				!strings.Contains(answer.HookErrors[0], "boom") {
				t.Errorf("the hook errors are %q", answer.HookErrors)
			}
		})
	}
}

// A function that continues after its hook's time is up cannot change the agent.
func TestAHookChangesNothingAfterItsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := answered(t, "x")
		late := make(chan error, 3)
		l.On(schema.BeforeLLMCall).Within(time.Second).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(ctx context.Context, s *loop.Status) error {
			if err := s.Append("", "in time"); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			<-time.After(time.Second)
			late <- s.Append("", "too late")
			late <- s.SetFlag("late", true)
			late <- s.Drop(schema.DropMessages{First: 1})
			return nil
		})))
		if _, err := l.Run(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := <-late; err == nil {
				t.Error("a hook whose time was up changed the agent")
			}
		}
		same(t, "conversation", []string{"user: go", "system: in time", "assistant: x"}, talk(l.History()))
	})
}

// Functions get copies, so that changing them does not change the agent.
func TestFunctionsHaveCopies(t *testing.T) {
	model := &script{turns: []schema.Message{calls("add", `{"a":1,"b":2}`), says("x")}}
	l := start(t, loop.Options{Model: model, Tools: []loop.Tool{adding()}})
	spoil := func(m *schema.Message) {
		m.Content = "spoiled"
		for i := range m.ToolCalls {
			m.ToolCalls[i].Name = "spoiled"
			copy(m.ToolCalls[i].Input, "spoiled")
		}
	}
	l.On(schema.AfterLLMCall).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(_ context.Context, s *loop.Status) error {
		spoil(s.AssistantMessage)
		for _, m := range s.History() {
			spoil(&m)
		}
		return nil
	})), loop.WithValueFunc(func(_ context.Context, _ *loop.Status, m schema.Message) (schema.Message, error) {
		kept := m
		kept.ToolCalls = slices.Clone(m.ToolCalls)
		for i := range kept.ToolCalls {
			kept.ToolCalls[i].Input = slices.Clone(kept.ToolCalls[i].Input)
		}
		spoil(&m)
		return kept, nil
	}))
	l.On(schema.QueryEnd).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(_ context.Context, s *loop.Status) error {
		spoil(s.Response().Message)
		return nil
	})))
	answer, err := l.Run(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	if answer.Message.Content != "x" {
		t.Errorf("%+v", answer.Message)
	}
	same(t, "conversation", []string{"user: go", `assistant: [c1 add {"a":1,"b":2}]`, "tool: c1 add 3[]", "assistant: x"}, talk(l.History()))
}

// Functions of hooks may call methods of their loop. Methods that cannot run during a
// query return an error, and none blocks.
func TestHooksMayUseTheirLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l *loop.Loop
		ran := 0
		uses := func(at schema.EventType) {
			_, err := l.Run(t.Context(), "another")
			if !errors.Is(err, loop.ErrRunning) || !errors.Is(l.NewConversation(), loop.ErrRunning) || l.Check() != nil || len(l.History()) == 0 {
				t.Errorf("at %s: %v", at, err)
			}
			l.On(at).When(func(context.Context, *loop.Status) (bool, error) { ran++; return false, nil }).Handle(schema.Continue).Remove()
		}
		l = start(t, loop.Options{
			Model: &script{turns: []schema.Message{calls("add", `{"a":1,"b":2}`, "fail", `{}`), says("x")}}, Tools: []loop.Tool{adding(), failing()}, System: "You add.",
			Output: func(loop.Chunk) { uses(schema.QueryEnd) },
			Verdict: func(e *schema.Event, v *schema.Verdict) {
				uses(e.HookType)
				v.Decision, e.ToolInput = schema.Fail, nil
			},
		})
		for _, at := range steered() {
			l.On(at).When(func(context.Context, *loop.Status) (bool, error) { uses(at); return true, nil }).Handle(schema.Continue,
				loop.WithEffects(loop.EffectFunc(func(context.Context, *loop.Status) error { uses(at); return nil })))
		}
		answer, err := l.Run(t.Context(), "go")
		if err != nil || answer.Content != "x" || len(answer.HookErrors) != 0 || ran != 0 {
			t.Errorf("%+v, %v; %d", answer, err, ran)
		}
	})
}
