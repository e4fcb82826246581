package guard_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// The lookup must have the same result as each rule by itself.
func TestTheLookupAgreesWithEachRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := rapid.SampledFrom([]schema.EventType{schema.PreToolUse, schema.UserPromptSubmit})
		agent := rapid.SampledFrom([]string{"a1", "a*", "a2", "*", "b?|a1"})
		rules := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) schema.PolicyHook {
			return schema.PolicyHook{
				Event: event.Draw(t, "event"), Agent: rapid.OneOf(rapid.Just(""), agent).Draw(t, "agent"),
				Matcher: rapid.SampledFrom([]string{"", "Bash", "Bash|Write", "B*", "?ash", "Write"}).Draw(t, "matcher"),
				System:  rapid.Bool().Draw(t, "system"), Preset: rapid.Bool().Draw(t, "preset"), Like: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "like"),
			}
		}), 0, 12).Draw(t, "rules")
		overrides := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) schema.Override {
			return schema.Override{Agent: agent.Draw(t, "overriding"), Event: event.Draw(t, "overridden")}
		}), 0, 3).Draw(t, "overrides")
		r, err := guard.Compile(rules, overrides)
		if err != nil {
			t.Fatal(err)
		}
		for _, who := range []string{"a1", "a2", "b1", "c"} {
			own := r.Of(who)
			for _, at := range []schema.EventType{schema.PreToolUse, schema.UserPromptSubmit, schema.PostToolUse} {
				for _, tool := range []string{"", "Bash", "Write", "Read"} {
					var want []int
					for i := range rules {
						if rules[i].Event == at && r.Asks(own, i, tool) {
							want = append(want, i)
						}
					}
					if got := r.Asked(own, at, tool); !slices.Equal(got, want) {
						t.Fatalf("%s, %s of %q: asked are %v where %v ask", who, at, tool, got, want)
					}
				}
			}
		}
	})
}

// If each agent has a hook, the data about one agent must not grow with the number of
// hooks: ten thousand would take a hundred megabytes.
func TestTheClassOfAnAgentIsSmall(t *testing.T) {
	var rules []schema.PolicyHook
	for i := range 10_000 {
		rules = append(rules, schema.PolicyHook{Event: schema.PreToolUse, Agent: fmt.Sprint("agent-", i)})
	}
	r, err := guard.Compile(rules, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Of("agent-7")); n == 0 || n > 16 {
		t.Errorf("it takes %d bytes", n)
	}
	if got := r.Asked(r.Of("agent-7"), schema.PreToolUse, "Bash"); !slices.Equal(got, []int{7}) {
		t.Errorf("asked are %v", got)
	}
}
