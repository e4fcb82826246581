package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
	"github.com/hookfabric/hookfabric/schema"
)

func when(h *schema.Hook) { h.When = "true" }

// Plans print as waves of batches: "a[0 1] ∥ b[2] → c[3]" is two hooks of the pool a in
// one request, beside one of b, and after both one of c.
var planCases = []struct {
	sentence string
	hooks    []schema.Hook
	want     string
}{
	{"nothing is configured", nil, ""},
	{
		"neighbours of one pool travel in one request",
		[]schema.Hook{hook("", pool("a")), hook("", pool("a")), hook("", pool("a"))},
		"a[0 1 2]",
	},
	{
		"rewriters of several pools run in order",
		[]schema.Hook{hook("", pool("a")), hook("", pool("b")), hook("", pool("a"))},
		"a[0] → b[1] → a[2]",
	},
	{
		"readonly neighbours run side by side",
		[]schema.Hook{hook("", pool("a"), readonly), hook("", pool("b"), readonly), hook("", pool("a"), readonly)},
		"a[0] ∥ b[1] ∥ a[2]",
	},
	{
		"a rewriter parts the waves",
		[]schema.Hook{hook("", pool("a"), readonly), hook("", pool("b"), readonly), hook("", pool("c")), hook("", pool("a"), readonly), hook("", pool("b"), readonly)},
		"a[0] ∥ b[1] → c[2] → a[3] ∥ b[4]",
	},
	{
		"rewriters and readonly hooks of one pool share a batch, which is not readonly",
		[]schema.Hook{hook("", pool("a"), readonly), hook("", pool("b"), readonly), hook("", pool("b")), hook("", pool("c"), readonly)},
		"a[0] → b[1 2] → c[3]",
	},
	{
		"what may run twice does not share a request with what may not",
		[]schema.Hook{hook("", pool("a")), hook("", pool("a"), once), hook("", pool("a"), once), hook("", pool("a"))},
		"a[0] → a[1 2] → a[3]",
	},
	{
		"and stands beside it if neither rewrites",
		[]schema.Hook{hook("", pool("a"), readonly), hook("", pool("a"), readonly, once)},
		"a[0] ∥ a[1]",
	},
	{
		"a condition never shares a batch with a rewriter before it",
		[]schema.Hook{hook("", pool("a")), hook("", pool("a"), when), hook("", pool("a"))},
		"a[0] → a[1 2]",
	},
	{
		"nor with one that came into the batch behind a reader",
		[]schema.Hook{hook("", pool("a"), readonly), hook("", pool("a")), hook("", pool("a"), readonly, when)},
		"a[0 1] → a[2]",
	},
	{
		"a condition shares a batch with readers before it",
		[]schema.Hook{hook("", pool("a"), readonly), hook("", pool("a"), readonly, when), hook("", pool("a"), when)},
		"a[0 1 2]",
	},
	{
		"shadow hooks are separate, each in a batch of its own, and split no batch",
		[]schema.Hook{hook("", pool("a")), hook("", pool("a"), shadow), hook("", pool("a")), hook("", pool("b"), shadow)},
		"a[0 2] (shadow a[1]) (shadow b[3])",
	},
	{
		"only hooks of the event and the tool are there",
		[]schema.Hook{
			hook("", pool("a"), func(h *schema.Hook) { h.Matcher = "Write|Edit" }), hook("", pool("a"), func(h *schema.Hook) { h.Matcher = "B*" }),
			hook("", pool("a"), at(schema.PostToolUse)), hook("", pool("a")),
		},
		"a[1 3]",
	},
}

func TestPlans(t *testing.T) {
	for _, c := range planCases {
		t.Run(c.sentence, func(t *testing.T) {
			if got := compile(t, c.hooks...).Plan("agent-1", schema.PreToolUse, "Bash").String(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func compile(t testing.TB, hooks ...schema.Hook) *dispatch.Snapshot {
	t.Helper()
	return compileWith(t, nil, hooks...)
}

func compileWith(t testing.TB, overrides []schema.Override, hooks ...schema.Hook) *dispatch.Snapshot {
	t.Helper()
	for i := range hooks {
		hooks[i].Name = fmt.Sprint("hook-", i)
	}
	s, err := dispatch.Compile(schema.Config{Version: 1, Hooks: hooks, Overrides: overrides}, compileCondition)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// For any configuration, a plan has exactly the hooks of the event, in order, in batches
// and waves that keep the contract's rules.
func TestPlansKeepTheRulesOfBatchesAndWaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := gen.Cases(gen.Shape{Pools: stagePools, Conditions: stageConditions, Stages: true}).Draw(t, "case")
		s, err := dispatch.Compile(c.Config, compileCondition)
		if err != nil {
			t.Fatal(err)
		}
		r := routing(&c.Event)
		p := s.Plan(r.Agent, r.Event, r.Tool)
		var want, got, shadows []string
		for _, h := range model.Resolve(c.Config, r.Agent, r.Event, r.Tool) {
			if h.Mode != schema.Shadow {
				want = append(want, h.Name)
			} else {
				shadows = append(shadows, h.Name)
			}
		}
		for _, w := range p.Waves {
			for _, b := range w {
				got = append(got, checkBatch(t, c.Config.Hooks, &b)...)
				if len(w) > 1 && !b.Readonly {
					t.Fatalf("a batch that rewrites runs beside others: %s", p)
				}
			}
		}
		for _, b := range p.Shadow {
			shadows = slices.DeleteFunc(shadows, func(s string) bool { return s == c.Config.Hooks[b.Hooks[0]].Name })
		}
		deliver, gates := model.Stages(c.Config, r.Agent, r.Event, r.Tool)
		if !slices.Equal(namesOf(c.Config.Hooks, p.Deliver), named(deliver)) || !slices.Equal(namesOf(c.Config.Hooks, p.Gates), named(gates)) {
			t.Fatalf("the plan %s has other stages than %q and %q", p, named(deliver), named(gates))
		}
		if !slices.Equal(got, want) || len(shadows) > 0 {
			t.Fatalf("the plan %s is of %q and without the shadows %q; want %q", p, got, shadows, want)
		}
		if guarded := model.Guarded(c.Config, r.Agent, r.Event, r.Tool); p.Guarded != guarded {
			t.Fatalf("guarded %t, want %t", p.Guarded, guarded)
		}
		if guards := model.Guarded(c.Config, r.Agent, r.Event, ""); s.Guards(r.Agent, r.Event, "") != guards {
			t.Fatalf("with an unknown tool guarded %t, want %t", !guards, guards)
		}
	})
}

// checkBatch checks one batch and names its hooks.
func checkBatch(t *rapid.T, hooks []schema.Hook, b *dispatch.Batch) (names []string) {
	rewriter := false
	for _, i := range b.Hooks {
		h := &hooks[i]
		if h.Pool != b.Pool || h.Idempotent != b.Idempotent || b.Readonly && !h.Readonly || h.When != "" && (rewriter || !b.Conditional) {
			t.Fatalf("hook %s does not belong into %+v", h.Name, *b)
		}
		rewriter = rewriter || !h.Readonly
		names = append(names, h.Name)
	}
	if b.Readonly == rewriter {
		t.Fatalf("readonly is wrong: %+v", *b)
	}
	return names
}

func TestCompileNamesEveryFault(t *testing.T) {
	_, err := dispatch.Compile(schema.Config{
		Hooks: []schema.Hook{
			{Name: "a", Event: "Never"},
			{Name: "b", Event: schema.PreToolUse, Matcher: "|"},
			{Name: "c", Event: schema.PreToolUse, When: "true"},
			{Name: "d", Event: schema.PreToolUse, Agent: "|"},
		},
		Overrides: []schema.Override{{Agent: " | ", Event: schema.PreToolUse}},
	}, nil)
	if err == nil {
		t.Fatal("it compiles")
	}
	for _, want := range []string{`hook "a"`, `hook "b"`, `hook "c"`, `agent "|"`, `agent " | "`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s:\n%v", want, err)
		}
	}
}

func TestAPlanIsMadeOnceAndShared(t *testing.T) {
	s := compile(t, hook(""), hook("", func(h *schema.Hook) { h.Agent = "agent-*" }))
	first := s.Plan("agent-1", schema.PreToolUse, "Bash")
	if s.Plan("agent-2", schema.PreToolUse, "Bash") != first {
		t.Error("two agents that the same patterns match have plans of their own")
	}
	if s.Plan("stranger", schema.PreToolUse, "Bash") == first {
		t.Error("another agent has the agents' plan")
	}
	if s.Plan("a", schema.SessionStart, "one") != s.Plan("a", schema.SessionStart, "two") {
		t.Error("an event without a tool has plans by tools")
	}
}

// Many calls use plans concurrently, with names that clients choose.
func TestPlansAreSafeForManyGoroutines(t *testing.T) {
	s := compile(t, hook(""), hook("", func(h *schema.Hook) { h.Agent = "agent-*" }), hook("", func(h *schema.Hook) { h.Matcher = "tool-1*" }))
	var calls sync.WaitGroup
	for g := range 4 {
		calls.Go(func() {
			for i := range 1000 {
				p := s.Plan(fmt.Sprint("agent-", i%7), schema.PreToolUse, fmt.Sprint("tool-", (i+g)%20))
				if len(p.Waves) != 1 {
					t.Errorf("plan %s", p)
				}
			}
		})
	}
	calls.Wait()
}
