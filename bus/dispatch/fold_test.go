package dispatch_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
	"github.com/hookfabric/hookfabric/schema"
)

// settled draws the verdicts of some hooks of one event, as Settle returns them.
func settled(t *rapid.T, events *rapid.Generator[schema.EventType], least, most int) (schema.EventType, []schema.Verdict) {
	event := events.Draw(t, "event")
	var out []schema.Verdict
	for range rapid.IntRange(least, most).Draw(t, "hooks") {
		h := gen.Hooks(event, gen.Shape{}).Draw(t, "hook")
		h.Event = event
		h.Name = rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
		out = append(out, dispatch.Settle(&h, outcome(0, gen.Answers(event).Draw(t, "answer"))))
	}
	return event, out
}

// outcome converts an answer of the model to a worker's outcome.
func outcome(hook int, a model.Answer) *schema.Outcome {
	return &schema.Outcome{Hook: hook, Kind: a.Kind, Error: a.Error, Result: a.Result}
}

func foldAll(t schema.EventType, parts ...schema.Verdict) schema.Verdict {
	var sum schema.Verdict
	for _, p := range parts {
		sum = dispatch.Fold(t, sum, p)
	}
	return sum
}

func same(t *rapid.T, law string, left, right any) {
	t.Helper()
	if reflect.DeepEqual(left, right) { // much faster, but distinguishes nil and empty
		return
	}
	if d := cmp.Diff(left, right, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s (-left +right):\n%s", law, d)
	}
}

// chains draws an event at which the first terminal result counts; posts draws another
// one, where nothing is dropped.
func chains() *rapid.Generator[schema.EventType] {
	return rapid.SampledFrom(schema.EventTypes()).Filter(schema.EventType.Chains)
}

func posts() *rapid.Generator[schema.EventType] {
	return rapid.SampledFrom(schema.EventTypes()).Filter(func(e schema.EventType) bool { return !e.Chains() })
}

func TestFoldIsAssociative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, p := settled(t, gen.EventTypes(), 3, 3)
		same(t, "(a·b)·c = a·(b·c)",
			dispatch.Fold(e, dispatch.Fold(e, p[0], p[1]), p[2]),
			dispatch.Fold(e, p[0], dispatch.Fold(e, p[1], p[2])))
	})
}

func TestTheEmptyVerdictIsTheUnitOfFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, p := settled(t, gen.EventTypes(), 1, 4)
		v := foldAll(e, p...)
		same(t, "unit·a = a", dispatch.Fold(e, schema.Verdict{}, v), v)
		same(t, "a·unit = a", dispatch.Fold(e, v, schema.Verdict{}), v)
	})
}

func TestATerminalVerdictIsALeftZeroOfFoldButForTheTrailBeforeIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, p := settled(t, chains(), 2, 2)
		before, after, end := p[0], p[1], ending(t, e)
		same(t, "t·x = t", dispatch.Fold(e, end, after), end)
		if e.Terminal(before.Decision) {
			return // before is then the zero verdict, by the line above
		}
		whole := dispatch.Fold(e, before, end)
		same(t, "the trail before", whole.ExecutedHooks[:1], before.ExecutedHooks)
		same(t, "the errors before", whole.HookErrors[:len(before.HookErrors)], before.HookErrors)
		same(t, "the injections before", whole.Injections[:len(before.Injections)], before.Injections)
		whole.ExecutedHooks = whole.ExecutedHooks[1:]
		whole.HookErrors = whole.HookErrors[len(before.HookErrors):]
		whole.Injections = whole.Injections[len(before.Injections):]
		same(t, "x·t = t but for the trail", whole, end)
	})
}

// ending draws a verdict that ends the chain.
func ending(t *rapid.T, e schema.EventType) schema.Verdict {
	r := gen.Results(e).Draw(t, "ending")
	r.Reason = r.Reason[:min(len(r.Reason), 8)]
	ends := slices.DeleteFunc(e.Decisions(), func(d schema.Decision) bool { return !e.Terminal(d) })
	r.Decision = rapid.SampledFrom(ends).Draw(t, "end")
	if r.Decision == schema.Stop {
		r.Value = jsontext.Value(`{"content":"the end"}`)
	}
	h := schema.Hook{Name: "end", Event: e, Readonly: rapid.Bool().Draw(t, "readonly")}
	return dispatch.Settle(&h, &schema.Outcome{Result: r})
}

func TestOnThePostEventsTheGreatestDecisionWinsAndFoldDropsNothing(t *testing.T) {
	order := []schema.Decision{schema.None, schema.Deny, schema.Stop, schema.Fail}
	rapid.Check(t, func(t *rapid.T) {
		e, ps := settled(t, posts(), 0, 6)
		got := foldAll(e, ps...)
		var want schema.Verdict
		for _, p := range ps {
			if slices.Index(order, p.Decision) > slices.Index(order, want.Decision) {
				want.Decision, want.Reason = p.Decision, p.Reason
			}
			want.ExecutedHooks = append(want.ExecutedHooks, p.ExecutedHooks...)
			want.HookErrors = append(want.HookErrors, p.HookErrors...)
			want.Injections = append(want.Injections, p.Injections...)
			want.Effects = append(want.Effects, p.Effects...)
			if e.Terminal(p.Decision) {
				break
			}
		}
		want.UpdatedOutput, want.Value = got.UpdatedOutput, got.Value
		same(t, "the first of the greatest, and everything else", want, got)
	})
}

func TestAStopOnThePostEventsIsALeftZeroOfFoldAndDropsNothingBeforeIt(t *testing.T) {
	stopping := posts().Filter(func(e schema.EventType) bool { return e.Permits(schema.Stop) })
	rapid.Check(t, func(t *rapid.T) {
		e, p := settled(t, stopping, 2, 2)
		before, after, end := p[0], p[1], ending(t, e)
		same(t, "s·x = s", dispatch.Fold(e, end, after), end)
		if e.Terminal(before.Decision) {
			return
		}
		whole := dispatch.Fold(e, before, end)
		same(t, "(x·s)·y = x·s", dispatch.Fold(e, whole, after), whole)
		want := schema.Stop
		if before.Decision == schema.Fail {
			want = schema.Fail // a stop does not undo a fail
		}
		same(t, "the decision and the stop's value", []string{string(whole.Decision), string(whole.Value)}, []string{string(want), string(end.Value)})
		same(t, "the trail", whole.ExecutedHooks, slices.Concat(before.ExecutedHooks, end.ExecutedHooks))
		same(t, "the errors", whole.HookErrors, slices.Concat(before.HookErrors, end.HookErrors))
		same(t, "the injections", whole.Injections, slices.Concat(before.Injections, end.Injections))
		same(t, "the effects", whole.Effects, slices.Concat(before.Effects, end.Effects))
		same(t, "the rewrite before", whole.UpdatedOutput, before.UpdatedOutput)
	})
}

func TestFeedbackThatGaveWayIsInjected(t *testing.T) {
	deny := func(hook, reason string) schema.Verdict {
		return schema.Verdict{Decision: schema.Deny, Reason: reason, ExecutedHooks: []schema.ExecutedHook{{Hook: hook, Decision: schema.Deny, Reason: reason}}}
	}
	end := func(d schema.Decision) schema.Verdict {
		return schema.Verdict{
			Decision: d, Reason: "the end", ExecutedHooks: []schema.ExecutedHook{{Hook: "end", Decision: d, Reason: "the end"}},
			Injections: []schema.Injection{{Content: "own", Strategy: schema.UserMessage, Hook: "end"}},
		}
	}
	for name, c := range map[string]struct {
		at     schema.EventType
		parts  []schema.Verdict
		reason string
		want   string
	}{
		"a stop behind two denies":               {schema.PostToolUse, []schema.Verdict{deny("a", "x"), deny("b", "y"), end(schema.Stop)}, "the end", "own a:x b:y"},
		"a fail between two denies":              {schema.ToolError, []schema.Verdict{deny("a", "x"), end(schema.Fail), deny("b", "y")}, "the end", "own a:x b:y"},
		"the verdict has the first deny's own":   {schema.PostToolUse, []schema.Verdict{deny("a", "x"), deny("b", "y")}, "x", "b:y"},
		"a deny with another's reason":           {schema.PostToolUse, []schema.Verdict{deny("a", "x"), deny("b", "x")}, "x", ""},
		"a deny without a reason":                {schema.PostToolUse, []schema.Verdict{deny("a", ""), end(schema.Stop)}, "the end", "own"},
		"before a tool a deny is not feedback":   {schema.PreToolUse, []schema.Verdict{deny("a", "x"), end(schema.Stop)}, "x", ""},
		"a single deny is not repeated":          {schema.PostToolUse, []schema.Verdict{deny("a", "x")}, "x", ""},
		"a stop alone has its own injections":    {schema.PostToolUse, []schema.Verdict{end(schema.Stop), deny("a", "x")}, "the end", "own"},
		"two hooks, folded one after the other":  {schema.PostToolUse, []schema.Verdict{{}, deny("a", "x"), {}, end(schema.Stop)}, "the end", "own a:x"},
		"at the end of a query it has no denies": {schema.QueryEnd, []schema.Verdict{end(schema.Stop)}, "the end", "own"},
	} {
		t.Run(name, func(t *testing.T) {
			got := foldAll(c.at, c.parts...)
			for range 2 { // a loop calls it again for the fabric's verdict
				dispatch.KeepFeedback(c.at, &got)
				var injected []string
				for _, in := range got.Injections {
					if in.Strategy == schema.ToolResult {
						in.Content = in.Hook + ":" + in.Content
					}
					injected = append(injected, in.Content)
				}
				if text := strings.Join(injected, " "); text != c.want || got.Reason != c.reason {
					t.Errorf("injected %q, want %q; the reason is %q", text, c.want, got.Reason)
				}
			}
		})
	}
}

func TestFoldEqualsTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := gen.EventTypes().Draw(t, "event")
		var ours []schema.Verdict
		var models []model.Part
		for range rapid.IntRange(0, 5).Draw(t, "hooks") {
			h := gen.Hooks(event, gen.Shape{}).Draw(t, "hook")
			h.Name = rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
			p := model.Normalise(h, event, gen.Answers(event).Draw(t, "answer"))
			ours, models = append(ours, p.Verdict), append(models, p)
		}
		same(t, "our fold = the model's", foldAll(event, ours...), model.FoldAll(event, models...).Verdict)
	})
}

// After a fold, appending to an argument must not change the sum, and the reverse.
func TestFoldSharesNoMemoryWithWhatItFolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, p := settled(t, gen.EventTypes(), 2, 2)
		a, b := roomy(p[0]), roomy(p[1])
		sum := dispatch.Fold(e, a, b)
		want := clone(sum)
		grow(&sum)
		same(t, "the first after the sum grew", withRoom(a), withRoom(roomy(p[0])))
		same(t, "the second after the sum grew", withRoom(b), withRoom(roomy(p[1])))
		sum = dispatch.Fold(e, a, b)
		grow(&a)
		grow(&b)
		same(t, "the sum after its parts grew", sum, want)
	})
}

// roomy returns v with spare capacity in its lists.
func roomy(v schema.Verdict) schema.Verdict {
	v.ExecutedHooks = slices.Grow(slices.Clone(v.ExecutedHooks), 3)
	v.HookErrors = slices.Grow(slices.Clone(v.HookErrors), 3)
	v.Injections = slices.Grow(slices.Clone(v.Injections), 3)
	v.Effects = slices.Grow(slices.Clone(v.Effects), 3)
	return v
}

// withRoom returns v with the value in the spare capacity of its lists.
func withRoom(v schema.Verdict) schema.Verdict {
	v.ExecutedHooks = v.ExecutedHooks[:len(v.ExecutedHooks)+1]
	v.HookErrors = v.HookErrors[:len(v.HookErrors)+1]
	v.Injections = v.Injections[:len(v.Injections)+1]
	v.Effects = v.Effects[:len(v.Effects)+1]
	return v
}

func grow(v *schema.Verdict) {
	v.ExecutedHooks = append(v.ExecutedHooks, schema.ExecutedHook{Hook: "foreign"})
	v.HookErrors = append(v.HookErrors, "foreign")
	v.Injections = append(v.Injections, schema.Injection{Content: "foreign"})
	v.Effects = append(v.Effects, jsontext.Value(`"foreign"`))
}

func clone(v schema.Verdict) schema.Verdict {
	v.ExecutedHooks, v.HookErrors = slices.Clone(v.ExecutedHooks), slices.Clone(v.HookErrors)
	v.Injections, v.Effects = slices.Clone(v.Injections), slices.Clone(v.Effects)
	return v
}
