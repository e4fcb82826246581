package dialect

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

// Express keeps each denial that the moment supports, independently of the rest of the verdict, and
// reports each part that it drops.
func TestExpressLosesNothing(t *testing.T) {
	hows := []How{Impossible, Emulated, Native}
	rapid.Check(t, func(t *rapid.T) {
		m := Moment{Name: "m", Event: rapid.SampledFrom(schema.EventTypes()).Draw(t, "event"), Can: map[Ability]How{}}
		for _, a := range []Ability{Deny, Ask, Approve, Rewrite, Inject, Replace, Feedback, Stop, Retry, Restart} {
			m.Can[a] = rapid.SampledFrom(hows).Draw(t, string(a))
		}
		v := schema.Verdict{Decision: rapid.SampledFrom(append(m.Event.Decisions(), schema.None)).Draw(t, "decision")}
		if rapid.Bool().Draw(t, "rewritten") && m.Event.Rewrites() == schema.RewriteInput {
			v.UpdatedInput = jsontext.Value(`{"a":1}`)
		}
		if rapid.Bool().Draw(t, "replaced") && m.Event.Rewrites() == schema.RewriteOutput {
			v.UpdatedOutput = jsontext.Value(`"new"`)
		}
		if rapid.Bool().Draw(t, "injected") {
			v.Injections = []schema.Injection{{Content: "text"}}
		}
		if rapid.Bool().Draw(t, "restart") {
			v.Restart = &schema.Restart{Content: "again"}
		}
		if rapid.Bool().Draw(t, "terminate") {
			v.Terminate = &schema.Terminate{Reason: "over"}
		}
		before := len(v.Injections)
		said, later, lost := Express(m, &v)

		refused := said.Decision == schema.Deny || said.Decision == schema.Fail || said.Decision == schema.Stop
		must := v.Decision == schema.Deny || v.Decision == schema.Ask && m.Can[Ask] != Native || v.UpdatedInput != nil && m.Can[Rewrite] == Impossible ||
			v.Terminate != nil && m.Can[Stop] != Native
		if must && m.Event == schema.PreToolUse && m.Can[Deny] != Impossible && !refused {
			t.Errorf("%+v becomes %+v", v, said)
		}
		if must && m.Event == schema.PreToolUse && refused && said.Decision != v.Decision && said.Reason == "" {
			t.Error("a refusal without a reason")
		}
		if m.Event == schema.PreToolUse && m.Can[Deny] == Impossible && must && len(lost) == 0 {
			t.Error("a refusal is lost without a word")
		}
		if v.UpdatedOutput != nil && m.Can[Replace] == Impossible && !strings.Contains(strings.Join(lost, " "), "output") {
			t.Error("that the output stays is not said")
		}
		want := before
		if v.Restart != nil && m.Can[Restart] != Native {
			want++
		}
		if v.UpdatedOutput != nil && m.Can[Replace] == Impossible {
			want++
		}
		told := len(said.Injections) + len(later)
		if told != want && !strings.Contains(strings.Join(lost, " "), "inject") {
			t.Errorf("%d texts of %d are told", told, want)
		}
		if len(v.Injections) != before {
			t.Error("the verdict itself was changed")
		}
	})
}
