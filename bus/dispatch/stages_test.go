package dispatch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

func preset(h *schema.Hook) { h.Preset, h.System = "delivery", true }
func system(h *schema.Hook) { h.System = true }

func ofAgent(id string) func(*schema.Hook) { return func(h *schema.Hook) { h.Agent = id } }
func about(tools string) func(*schema.Hook) {
	return func(h *schema.Hook) { h.Matcher = tools }
}

// builtin returns a hook of a handler at PostToolUse.
func builtin(handler string, changes ...func(*schema.Hook)) schema.Hook {
	return hook(handler, append([]func(*schema.Hook){at(schema.PostToolUse), pool("a")}, changes...)...)
}

var stagePlanCases = []struct {
	sentence  string
	hooks     []schema.Hook
	overrides []schema.Override
	event     schema.EventType
	want      string
}{
	{
		"stages are in no wave and part no batch",
		[]schema.Hook{builtin("x"), builtin(schema.HumanInput), builtin("y"), builtin(schema.SubagentComplete)}, nil,
		schema.PostToolUse, "a[0 2] (delivers [1 3])",
	},
	{
		"of several of one handler the last one counts, where it stands",
		[]schema.Hook{builtin(schema.HumanInput), builtin(schema.SubagentComplete), builtin(schema.HumanInput), builtin(schema.HumanInput, about("Write"))}, nil,
		schema.PostToolUse, " (delivers [1 2])",
	},
	{
		"a preset's hook yields to one that is written, and that one's matcher decides",
		[]schema.Hook{builtin(schema.HumanInput, preset), builtin(schema.SubagentComplete, preset), builtin(schema.HumanInput, about("Write"))}, nil,
		schema.PostToolUse, " (delivers [1])",
	},
	{
		"and to one of the agent's own",
		[]schema.Hook{builtin("x", preset), builtin(schema.HumanInput, preset), builtin("x", ofAgent("agent-*")), builtin(schema.HumanInput, ofAgent("agent-1"))}, nil,
		schema.PostToolUse, "a[2] (delivers [3])",
	},
	{
		"but not to another agent's, nor to one of another event or kind",
		[]schema.Hook{
			builtin(schema.HumanInput, preset), builtin(schema.HumanInput, ofAgent("agent-2")), builtin(schema.HumanInput, at(schema.ToolError)),
			builtin("x", preset), builtin("x", func(h *schema.Hook) { h.Type = schema.Command }),
		}, nil,
		schema.PostToolUse, "a[3 4] (delivers [0])",
	},
	{
		"an override keeps a preset's hook, and brings it back in the place of one that it drops",
		[]schema.Hook{builtin(schema.HumanInput, preset), builtin(schema.HumanInput), builtin(schema.SubagentComplete, preset)},
		[]schema.Override{{Agent: "agent-1", Event: schema.PostToolUse}},
		schema.PostToolUse, " (delivers [0 2])",
	},
	{
		"a system one is not dropped",
		[]schema.Hook{builtin(schema.HumanInput, preset), builtin(schema.HumanInput, system), builtin("x")},
		[]schema.Override{{Agent: "agent-1", Event: schema.PostToolUse}},
		schema.PostToolUse, " (delivers [1])",
	},
	{
		"nothing is delivered before a tool, and no gate stands after one",
		[]schema.Hook{builtin(schema.HumanInput, at(schema.PreToolUse)), builtin(schema.RoundTimeoutPre, at(schema.PreToolUse)), builtin(schema.RoundTimeoutPre)}, nil,
		schema.PreToolUse, " (gates [1])",
	},
	{
		"a stage in shadow mode is not planned",
		[]schema.Hook{builtin(schema.HumanInput, shadow), builtin(schema.SubagentComplete)}, nil,
		schema.PostToolUse, " (delivers [1])",
	},
	{
		"only builtins are stages",
		[]schema.Hook{builtin(schema.HumanInput, func(h *schema.Hook) { h.Type = schema.Command })}, nil,
		schema.PostToolUse, "a[0]",
	},
}

func TestPlansOfStages(t *testing.T) {
	for _, c := range stagePlanCases {
		t.Run(c.sentence, func(t *testing.T) {
			s := compileWith(t, c.overrides, c.hooks...)
			if got := s.Plan("agent-1", c.event, "Bash").String(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestOnlyGatesGuardAmongStages(t *testing.T) {
	for _, c := range []struct {
		hook schema.Hook
		want bool
	}{
		{builtin(schema.RoundTimeoutPre, at(schema.PreToolUse), closed), true},
		{builtin(schema.RoundTimeoutPre, at(schema.PreToolUse)), false},
		{builtin(schema.RoundTimeoutPre, at(schema.PreToolUse), closed, shadow), false},
		{builtin(schema.HumanInput, closed), false},
		{builtin("x", closed), true},
	} {
		s := compile(t, c.hook)
		p := s.Plan("agent-1", c.hook.Event, "Bash")
		if guards := s.Guards("agent-1", c.hook.Event, ""); p.Guarded != c.want || guards != c.want {
			t.Errorf("%s fail_closed=%t mode=%q: guarded %t, with an unknown tool %t, want %t", c.hook.Handler, c.hook.FailClosed, c.hook.Mode, p.Guarded, guards, c.want)
		}
	}
}

func TestAPlanBeforeAHookHasOnlyThoseBeforeIt(t *testing.T) {
	pre := func(handler string, changes ...func(*schema.Hook)) schema.Hook {
		return builtin(handler, append(changes, at(schema.PreToolUse))...)
	}
	s := compile(t, pre("w"), pre("x", pool("b")), pre(schema.RoundTimeoutPre), pre("y"), pre("z", shadow), pre("v", closed))
	p := s.PlanBefore("agent-1", schema.PreToolUse, "Bash", 2)
	if want := "a[0] → b[1] (shadow a[4]) (gates [2])"; p.String() != want || !p.Guarded {
		t.Errorf("%s, guarded %t; want %s, guarded", p, p.Guarded, want)
	}
	if got, want := s.Plan("agent-1", schema.PreToolUse, "Bash").String(), "a[0] → b[1] → a[3 5] (shadow a[4]) (gates [2])"; got != want {
		t.Errorf("afterwards the whole plan is %s, want %s", got, want)
	}
}

// In any order of stages, their results are placed in registration order, and earlier
// entries stay.
func TestPlaceKeepsRegistrationOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "hooks")
		hooks, all := make([]schema.Hook, n), make([]int, n)
		for i := range hooks {
			hooks[i], all[i] = hook(fmt.Sprint("hook-", n-i)), i
		}
		s, err := dispatch.Compile(schema.Config{Version: 1, Hooks: hooks}, nil)
		if err != nil {
			t.Fatal(err)
		}
		stages := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "which are stages")
		counts := rapid.SliceOfN(rapid.IntRange(0, 2), n, n).Draw(t, "how many injections each")
		var v, want schema.Verdict
		for i := range all {
			saying(&want, hooks[i].Name, counts[i])
			if !stages[i] {
				saying(&v, hooks[i].Name, counts[i])
			}
		}
		for _, i := range rapid.Permutation(all).Draw(t, "order of stages") {
			if stages[i] {
				var stage schema.Verdict
				saying(&stage, "", counts[i])
				s.Place(&v, i, stage.ExecutedHooks[0], stage.Injections)
			}
		}
		if d := cmp.Diff(want, v); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

// saying adds the result of a hook with that many injections to a verdict.
func saying(v *schema.Verdict, hook string, injections int) {
	v.ExecutedHooks = append(v.ExecutedHooks, schema.ExecutedHook{Hook: hook, Outcome: schema.OK})
	for k := range injections {
		v.Injections = append(v.Injections, schema.Injection{Content: fmt.Sprint(k), Hook: hook})
	}
}

// Entries without a hook of the configuration are about the whole call, and stay first.
func TestPlaceKeepsEntriesWithoutAHook(t *testing.T) {
	s := compile(t, hook(""), hook(""), hook(""))
	v := schema.Verdict{Injections: []schema.Injection{{Hook: "stranger"}, {Hook: "hook-2"}}}
	s.Place(&v, 1, schema.ExecutedHook{}, []schema.Injection{{Content: "c"}})
	var got []string
	for _, i := range v.Injections {
		got = append(got, i.Hook)
	}
	if want := "stranger hook-1 hook-2"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

func named(hooks []schema.Hook) (names []string) {
	for _, h := range hooks {
		names = append(names, h.Name)
	}
	return names
}

// namesOf returns the names of hooks by index.
func namesOf(hooks []schema.Hook, of []int) (names []string) {
	for _, i := range of {
		names = append(names, hooks[i].Name)
	}
	return names
}
