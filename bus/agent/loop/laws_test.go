package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/schema"
)

// A plan describes a hook at BeforeFinalResponse for the reference below.
type plan struct {
	// when is the result of its condition: true, false, or an error.
	when string
	// effect and value say whether the hook has one, and whether it fails.
	effect, value string
	decision      schema.Decision
	closed        bool
}

// result is the result of one event, in the reference and in the loop.
type result struct {
	decision schema.Decision
	text     string
	trail    []string
	errors   int
}

// expected is the reference: the rules of the package comment, implemented without the
// code under test.
func expected(plans []plan, text string) result {
	w := result{decision: schema.Continue, text: text}
	original := text
	for i, p := range plans {
		if p.when == "error" {
			w.errors++
		}
		if p.when == "false" {
			continue
		}
		failed := false
		if p.effect != "" {
			w.trail = append(w.trail, fmt.Sprintf("%d!", i))
			failed = p.effect == "fails"
		}
		next := w.text
		if !failed && p.value != "" {
			w.trail = append(w.trail, fmt.Sprintf("%d=%s", i, w.text))
			next = fmt.Sprintf("%s.%d", w.text, i)
			failed = p.value == "fails"
		}
		decision := p.decision
		if failed {
			w.errors++
			if !p.closed {
				continue
			}
			decision, next = schema.Fail, w.text
		}
		if decision == schema.Continue {
			w.text = next
			continue
		}
		w.decision, w.text = decision, original
		if decision == schema.Stop {
			w.text = next
		}
		return w
	}
	return w
}

// register registers the plan as a hook.
func (p plan) register(l *loop.Loop, i int, trail *[]string) {
	broken := errors.New("broken")
	r := l.On(schema.BeforeFinalResponse).Named(fmt.Sprint("hook ", i))
	if p.when != "" {
		r.When(func(context.Context, *loop.Status) (bool, error) {
			if p.when == "error" {
				return false, broken
			}
			return p.when == "true", nil
		})
	}
	if p.closed {
		r.FailClosed()
	}
	var options []loop.HandleOption
	if p.effect != "" {
		options = append(options, loop.WithEffects(loop.EffectFunc(func(context.Context, *loop.Status) error {
			*trail = append(*trail, fmt.Sprintf("%d!", i))
			if p.effect == "fails" {
				return broken
			}
			return nil
		})))
	}
	if p.value != "" {
		options = append(options, loop.WithValueFunc(func(_ context.Context, s *loop.Status, m schema.Message) (schema.Message, error) {
			*trail = append(*trail, fmt.Sprintf("%d=%s", i, s.AssistantMessage.Content))
			m.Content = fmt.Sprintf("%s.%d", m.Content, i)
			if p.value == "fails" {
				return m, broken
			}
			return m, nil
		}))
	}
	r.Handle(p.decision, options...)
}

// For random hooks, the loop and the reference have the same result.
func TestRandomHooksAgreeWithTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var plans []plan
		for range rapid.IntRange(0, 6).Draw(rt, "hooks") {
			p := plan{
				when:     rapid.SampledFrom([]string{"", "", "true", "false", "error"}).Draw(rt, "when"),
				effect:   rapid.SampledFrom([]string{"", "works", "fails"}).Draw(rt, "effect"),
				value:    rapid.SampledFrom([]string{"", "works", "works", "fails"}).Draw(rt, "value"),
				decision: rapid.SampledFrom([]schema.Decision{schema.Continue, schema.Continue, schema.Continue, schema.Retry, schema.Stop, schema.Fail}).Draw(rt, "decision"),
				closed:   rapid.Bool().Draw(rt, "fail-closed"),
			}
			if p.decision == schema.Stop && p.value == "" {
				p.value = "works" // other types are rejected at registration
			}
			plans = append(plans, p)
		}
		var got result
		l, err := loop.New(loop.Options{
			Agent: "agent1", MaxIterations: 1, Logger: quiet(),
			Model: loop.ModelFunc(func(context.Context, *loop.Request) (schema.Message, error) { return says("x"), nil }),
			Verdict: func(e *schema.Event, v *schema.Verdict) {
				if e.HookType == schema.BeforeFinalResponse {
					got.decision, got.errors = v.Decision, len(v.HookErrors)
				}
			},
		})
		if err != nil {
			rt.Fatal(err)
		}
		for i, p := range plans {
			p.register(l, i, &got.trail)
		}
		want := expected(plans, "x")
		answer, err := l.Run(t.Context(), "go")
		got.text = answer.Content
		if want.decision == schema.Fail || want.decision == schema.Retry {
			want.text = "" // there is no answer
			if err == nil {
				rt.Errorf("it ended with %+v", answer)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Errorf("of %+v came\n%+v, and the reference says\n%+v", plans, got, want)
		}
	})
}
