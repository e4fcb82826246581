package gen_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
	"github.com/hookfabric/hookfabric/schema"
)

// TestTenThousandCasesMeetEveryCell checks that ten thousand cases meet every cell of the
// contract's tables: at every event every decision, known or unknown, and every failure, under both
// policies.
func TestTenThousandCasesMeetEveryCell(t *testing.T) {
	met, long, beside := map[string]int{}, 0, 0
	cases := gen.Cases(gen.Shape{})
	cells := len(schema.EventTypes()) * len(sayings()) * 2
	for seed := 0; seed < 10_000 && len(met) < cells; seed++ {
		c := cases.Example(seed)
		x := model.Judge(c.Config, c.Event, func(h schema.Hook, e schema.Event) model.Answer {
			a := c.Table.Script(h, e)
			said := "decision " + string(a.Result.Decision)
			if a.Kind != schema.OK {
				said = "failure " + string(a.Kind)
			}
			met[key(e.HookType, said, h.FailClosed)]++
			return a
		}, model.Options{})
		long, beside = long+len(x.Calls)/4, beside+len(x.Beside)
	}
	if long < 20 || beside < 20 {
		t.Errorf("%d long chains and %d hooks beside an end are too few", long, beside)
	}
	for _, event := range schema.EventTypes() {
		for _, said := range sayings() {
			for _, failClosed := range []bool{false, true} {
				if k := key(event, said, failClosed); met[k] == 0 {
					t.Errorf("%s was never met", k)
				}
			}
		}
	}
	if len(met) != cells {
		t.Errorf("%d cells were met, %d are known", len(met), cells)
	}
}

func key(e schema.EventType, said string, failClosed bool) string {
	return fmt.Sprintf("%s/%s/fail_closed=%t", e, said, failClosed)
}

func sayings() []string {
	var out []string
	for _, d := range []schema.Decision{
		schema.None, schema.Continue, schema.Allow, schema.Ask, schema.Deny, schema.Retry, schema.Stop, schema.Fail,
		schema.Reject, "DENY", "perhaps", `""`,
	} {
		out = append(out, "decision "+string(d))
	}
	for _, k := range schema.OutcomeKinds() {
		if k != schema.OK && k != schema.Late {
			out = append(out, "failure "+string(k))
		}
	}
	return out
}

func TestShapesBoundWhatIsDrawn(t *testing.T) {
	s := gen.Shape{Pools: []string{"east", "west"}, Conditions: []string{"true"}, Hooks: 2}
	for seed := range 200 {
		c := gen.Cases(s).Example(seed)
		if len(c.Config.Hooks) > s.Hooks {
			t.Fatalf("%d hooks", len(c.Config.Hooks))
		}
		for _, h := range c.Config.Hooks {
			if !slices.Contains(s.Pools, h.Pool) || h.When != "true" {
				t.Fatalf("pool %q, when %q", h.Pool, h.When)
			}
		}
	}
}

// TestScriptsAnswerAlikeWhenAskedAlike checks that a script's answer depends on what the hook sees,
// and not on its spelling.
func TestScriptsAnswerAlikeWhenAskedAlike(t *testing.T) {
	table := gen.Table{"h": {{Error: "one"}, {Error: "two"}}}
	heard := map[string]bool{}
	for n := range 20 {
		plain := schema.Event{ToolInput: fmt.Appendf(nil, `{"a":1,"n":%d}`, n)}
		spaced := schema.Event{ToolInput: fmt.Appendf(nil, `{ "n" : %d, "a": 1 }`, n)}
		one, other := table.Script(schema.Hook{Name: "h"}, plain), table.Script(schema.Hook{Name: "h"}, spaced)
		if one.Error != other.Error {
			t.Errorf("%s and %s are answered differently", plain.ToolInput, spaced.ToolInput)
		}
		heard[one.Error] = true
	}
	if len(heard) != 2 {
		t.Errorf("whatever it saw, the hook said %v", heard)
	}
	if got := table.Script(schema.Hook{Name: "unlisted"}, schema.Event{}); got.Kind != schema.OK {
		t.Errorf("a hook that the table does not list: %+v", got)
	}
}

func TestLogsOfFailuresStayReadable(t *testing.T) {
	c := gen.Case{Table: gen.Table{"h": {{Kind: schema.OK, Result: schema.Denied(strings.Repeat("x", 1<<20))}}}}
	if s := fmt.Sprintf("%#v", c); len(s) > 4000 || !strings.Contains(s, `h: ok "" {"decision":"deny"`) {
		t.Errorf("%d bytes: %.200s", len(s), s)
	}
}
