package model_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
	"github.com/hookfabric/hookfabric/schema"
)

// parts draws what hooks of one event count for.
func parts(t *rapid.T, least, most int) (schema.EventType, []model.Part) {
	return partsAt(t, gen.EventTypes(), least, most)
}

func partsAt(t *rapid.T, events *rapid.Generator[schema.EventType], least, most int) (schema.EventType, []model.Part) {
	event := events.Draw(t, "event")
	var out []model.Part
	for range rapid.IntRange(least, most).Draw(t, "hooks") {
		h := gen.Hooks(event, gen.Shape{}).Draw(t, "hook")
		h.Name = rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
		out = append(out, model.Normalise(h, event, gen.Answers(event).Draw(t, "answer")))
	}
	return event, out
}

func same(t *rapid.T, law string, left, right any) {
	t.Helper()
	if d := cmp.Diff(left, right, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s (-left +right):\n%s", law, d)
	}
}

func TestFoldIsAssociative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, p := parts(t, 3, 3)
		same(t, "(a·b)·c = a·(b·c)",
			model.Fold(e, model.Fold(e, p[0], p[1]), p[2]),
			model.Fold(e, p[0], model.Fold(e, p[1], p[2])))
	})
}

func TestTheEmptyPartIsTheUnitOfTheFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, p := parts(t, 1, 1)
		same(t, "unit·a = a", model.Fold(e, model.Part{}, p[0]), p[0])
		same(t, "a·unit = a", model.Fold(e, p[0], model.Part{}), p[0])
	})
}

func TestATerminalPartIsALeftZeroForAllButTheTrailBeforeIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, p := partsAt(t, rapid.SampledFrom(chains), 2, 2)
		before, after, end := p[0], p[1], ending(t, e)
		same(t, "t·x = t", model.Fold(e, end, after), end)
		if terminal(e, before.Decision) {
			return // then before is the zero, by the line above
		}
		whole := model.Fold(e, before, end)
		if n := len(before.ExecutedHooks); len(whole.ExecutedHooks) != n+1 || len(whole.Injections) < len(before.Injections) {
			t.Fatalf("what came before the end is gone from %+v", whole)
		}
		whole.ExecutedHooks = whole.ExecutedHooks[len(before.ExecutedHooks):]
		whole.HookErrors = whole.HookErrors[len(before.HookErrors):]
		whole.Injections = whole.Injections[len(before.Injections):]
		same(t, "x·t = t but for the trail", whole, end)
	})
}

// chains are the events at which the first terminal result wins; posts are the
// others, where nothing is dropped. Stated once more, apart from the model.
var (
	chains = []schema.EventType{
		schema.PreToolUse, schema.UserPromptSubmit, schema.BeforeLLMCall, schema.AfterLLMCall, schema.BeforeFinalResponse,
	}
	posts = []schema.EventType{
		schema.PostToolUse, schema.ToolError, schema.QueryEnd, schema.SessionStart, schema.SessionEnd,
	}
)

func terminal(e schema.EventType, d schema.Decision) bool {
	return slices.Contains(chains, e) && decisive(d) || stops(e, d)
}

// stops: a stop ends every event's hooks at which one is legal.
func stops(e schema.EventType, d schema.Decision) bool {
	return d == schema.Stop && slices.Contains(e.Decisions(), d)
}

// ending draws what a hook counts for that ends the chain, whatever else it
// says, as long as it is not so much that only the decision is kept.
func ending(t *rapid.T, e schema.EventType) model.Part {
	answer := rapid.Map(gen.Results(e), func(r schema.Result) model.Answer {
		r.Reason = r.Reason[:min(len(r.Reason), 8)]
		return model.Answer{Result: r}
	}).Draw(t, "ending")
	ends := slices.DeleteFunc(e.Decisions(), func(d schema.Decision) bool { return !terminal(e, d) })
	answer.Result.Decision = rapid.SampledFrom(ends).Draw(t, "end")
	if answer.Result.Decision == schema.Stop {
		answer.Result.Value = jsontext.Value(`{"content":"the end"}`)
	}
	return model.Normalise(schema.Hook{Name: "end", Readonly: rapid.Bool().Draw(t, "readonly")}, e, answer)
}

func TestOnThePostEventsTheGreatestDecisionWinsAndNothingIsDropped(t *testing.T) {
	order := []schema.Decision{schema.None, schema.Deny, schema.Stop, schema.Fail}
	rapid.Check(t, func(t *rapid.T) {
		e, ps := partsAt(t, rapid.SampledFrom(posts), 0, 6)
		got := model.FoldAll(e, ps...)
		var first model.Part
		var trail, errors, injections, effects int
		for _, p := range ps {
			if slices.Index(order, p.Decision) > slices.Index(order, first.Decision) {
				first = p
			}
			trail, errors = trail+len(p.ExecutedHooks), errors+len(p.HookErrors)
			injections, effects = injections+len(p.Injections), effects+len(p.Effects)
			if stops(e, p.Decision) {
				break
			}
		}
		same(t, "the first of the greatest", []string{string(first.Decision), first.Reason}, []string{string(got.Decision), got.Reason})
		same(t, "nothing dropped", []int{trail, errors, injections, effects},
			[]int{len(got.ExecutedHooks), len(got.HookErrors), len(got.Injections), len(got.Effects)})
	})
}

func TestAStopOnThePostEventsIsALeftZeroThatDropsNothingBeforeIt(t *testing.T) {
	stopping := rapid.SampledFrom(posts).Filter(func(e schema.EventType) bool { return stops(e, schema.Stop) })
	rapid.Check(t, func(t *rapid.T) {
		e, p := partsAt(t, stopping, 2, 2)
		before, after, end := p[0], p[1], ending(t, e)
		same(t, "s·x = s", model.Fold(e, end, after), end)
		if stops(e, before.Decision) {
			return
		}
		whole := model.Fold(e, before, end)
		same(t, "(x·s)·y = x·s", model.Fold(e, whole, after), whole)
		same(t, "the stop's value", string(whole.Value), string(end.Value))
		want := schema.Stop
		if before.Decision == schema.Fail {
			want = schema.Fail
		}
		same(t, "a stop undoes no fail", whole.Decision, want)
		same(t, "nothing dropped",
			[]int{len(before.ExecutedHooks) + 1, len(before.HookErrors) + len(end.HookErrors), len(before.Injections) + len(end.Injections), len(before.Effects) + len(end.Effects)},
			[]int{len(whole.ExecutedHooks), len(whole.HookErrors), len(whole.Injections), len(whole.Effects)})
	})
}

// Readonly neighbours may all run at once: folding all of their results gives
// what asking them in order, and stopping at the end of the chain, gives.
func TestSideBySideEqualsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := gen.Cases(gen.Shape{}).Draw(t, "case")
		for i := range c.Config.Hooks {
			c.Config.Hooks[i].Readonly, c.Config.Hooks[i].Mode = true, schema.Enforce
		}
		want := c.Judge(model.Options{})
		var all []model.Part
		for _, h := range model.Resolve(c.Config, c.Event.AgentID, c.Event.HookType, c.Event.ToolName) {
			all = append(all, model.Normalise(h, c.Event.HookType, c.Table.Script(h, c.Event)))
		}
		got := model.Feedback(c.Event.HookType, model.FoldAll(c.Event.HookType, all...))
		got.ConfigVersion = c.Config.Version
		same(t, "side by side = in order", want.Part, got)
		if len(want.Calls)+len(want.Beside) != len(all) {
			t.Fatalf("of %d neighbours the model lets %d and %d run", len(all), len(want.Calls), len(want.Beside))
		}
	})
}

// A verdict never blocks without a hook that decided so, and never passes when
// a hook that was asked blocked: guarantees 1 and 2 on the model itself.
func TestBlockingIsDecidedByHooksAndNeverLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := gen.Cases(gen.Shape{}).Draw(t, "case")
		got := c.Judge(model.Options{})
		decided := false
		for _, row := range got.ExecutedHooks {
			decided = decided || decisive(row.Decision)
		}
		if decided != decisive(got.Decision) {
			t.Fatalf("verdict %q, trail %+v", got.Decision, got.ExecutedHooks)
		}
		if len(got.Calls) != len(got.ExecutedHooks) {
			t.Fatalf("%d hooks asked, %d lines of trail", len(got.Calls), len(got.ExecutedHooks))
		}
		same(t, "the model agrees with itself", got.Diff(got.Verdict), []string(nil))
	})
}
