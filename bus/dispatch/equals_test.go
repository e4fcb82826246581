package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
	"github.com/hookfabric/hookfabric/schema"
)

// For any configuration and answers, with several pools, conditions, overrides and shadow
// hooks, and with workers that refuse, split and lose batches, the verdict
// and the input of each hook are the model's.
func TestDispatchEqualsTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := gen.Cases(gen.Shape{Pools: stagePools, Conditions: stageConditions, Stages: true}).Draw(rt, "case")
		p := play{
			c: c, seed: rapid.Uint64().Draw(rt, "seed"), local: rapid.Bool().Draw(rt, "with a local worker"),
			again: rapid.IntRange(0, 7).Draw(rt, "asked again") == 7, body: "sound",
		}
		if !p.again && rapid.IntRange(0, 15).Draw(rt, "broken") == 15 {
			p.body = rapid.SampledFrom([]string{"forged", "unreadable"}).Draw(rt, "body")
		}
		var d []string
		synctest.Test(t, func(*testing.T) { d = p.differences() })
		if len(d) > 0 {
			rt.Fatal(strings.Join(d, "\n"))
		}
	})
}

// play is one case and its circumstances.
type play struct {
	c     gen.Case
	seed  uint64
	local bool
	again bool   // the shim asks for the second time
	body  string // sound, forged or unreadable
}

func (p *play) differences() []string {
	script, unreached := p.c.Table.Script, []string(nil)
	if p.again {
		script, unreached = p.second()
	}
	want := model.Judge(p.c.Config, p.c.Event, script, model.Options{
		When: holds, Forged: p.body == "forged" && p.concerned(), Unreadable: p.body == "unreadable",
	})
	want.Beside = beside(p.c, want)
	s := newStage(p.c, script, p.seed)
	attempt := 1
	if p.again {
		attempt = 2
	}
	got, took, err := s.play(attempt, p.local, p.encode())
	if err != nil {
		return []string{err.Error()}
	}
	d := append(want.Diff(got), want.DiffCalls(s.calls, unreached...)...)
	if took > slowest {
		d = append(d, fmt.Sprintf("took %s of fake time; no worker was slow", took))
	}
	if p.body == "sound" && decisive(got.Decision) != slices.ContainsFunc(got.ExecutedHooks, func(h schema.ExecutedHook) bool { return decisive(h.Decision) }) {
		d = append(d, fmt.Sprintf("the verdict is %q; the hooks decided %+v", got.Decision, got.ExecutedHooks))
	}
	return append(d, foreign(s.asides, &want)...)
}

// decisive decisions block an event or end its query.
func decisive(d schema.Decision) bool {
	return d == schema.Deny || d == schema.Retry || d == schema.Stop || d == schema.Fail
}

// concerned reports whether some hook is asked at all: where none is, it is not
// the dispatcher that finds out about forged tools.
func (p *play) concerned() bool {
	e := &p.c.Event
	return slices.ContainsFunc(model.Resolve(p.c.Config, e.AgentID, e.HookType, e.ToolName), func(h schema.Hook) bool { return h.Mode != schema.Shadow })
}

// second is the script of a second attempt: hooks that are not idempotent do
// not run again.
func (p *play) second() (model.Script, []string) {
	var unreached []string
	for _, h := range p.c.Config.Hooks {
		if !h.Idempotent {
			unreached = append(unreached, h.Name)
		}
	}
	return func(h schema.Hook, e schema.Event) model.Answer {
		if !h.Idempotent {
			return model.Answer{Kind: schema.Lost, Error: "it may have run"}
		}
		return p.c.Table.Script(h, e)
	}, unreached
}

func (p *play) encode() []byte {
	e := p.c.Event
	switch p.body {
	case "forged":
		e.ToolName += "Other"
	case "unreadable":
		return []byte(`{"tool_input": [`)
	}
	body, err := schema.Marshal(&e)
	if err != nil {
		panic(err) // what was drawn can be encoded
	}
	return body
}

// foreign returns outcomes that were reported aside although their hooks did not run beside
// the one that ended the chain.
func foreign(asides []string, want *model.Expectation) (d []string) {
	var allowed []string
	for _, c := range want.Beside {
		allowed = append(allowed, c.Hook)
	}
	for _, name := range asides {
		if !slices.Contains(allowed, name) {
			d = append(d, fmt.Sprintf("hook %q was reported aside; only %q may be", name, allowed))
		}
	}
	return d
}
