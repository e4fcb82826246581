package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
	"github.com/hookfabric/hookfabric/schema"
)

func TestShadowHooksNeitherDelayNorCount(t *testing.T) {
	inWorld(t, []schema.Hook{hook("s", shadow, closed), hook("x"), hook("t", shadow, pool("unserved"), closed)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("s", act{takes: 5 * time.Second, says: schema.Denied("would have")})
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a")
		w.took(took, 0, 0)
		w.wantsEvents("shadow t=no_worker, continue would be deny")
		pass(6 * time.Second)
		w.wantsEvents("shadow t=no_worker, continue would be deny", "shadow s=ok, continue would be deny")
	})
}

// The decision of one shadow hook does not hide that of the next.
func TestShadowHooksRunByThemselves(t *testing.T) {
	inWorld(t, []schema.Hook{hook("s", shadow), hook("t", shadow)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("s", act{says: schema.Denied("would have")})
		p.act("t", act{takes: time.Second})
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "")
		w.took(took, 0, 0)
		pass(2 * time.Second)
		w.wantsEvents("shadow s=ok, continue would be deny", "shadow t=ok, continue would be continue")
	})
}

func TestTheNumberOfShadowHooksIsLimited(t *testing.T) {
	inWorld(t, []schema.Hook{hook("s", shadow), hook("t", shadow)}, func(w *world) {
		w.opt.Shadows = 3
		w.build()
		p := w.peer("remote", "a", 100)
		p.act("s", act{takes: time.Second})
		p.act("t", act{takes: time.Second})
		for range 4 {
			w.ask(time.Minute)
		}
		pass(2 * time.Second)
		synctest.Wait()
		var dropped, ran int
		for _, s := range w.events {
			switch s {
			case "1 shadows dropped":
				dropped++
			case "2 shadows dropped":
				dropped += 2
			case "shadow s=ok, continue would be continue", "shadow t=ok, continue would be continue":
				ran++
			}
		}
		if dropped != 5 || ran != 3 {
			t.Errorf("%d dropped, %d ran; want 5 and 3", dropped, ran)
		}
		w.ask(time.Minute) // the limit is free again
		synctest.Wait()
		if n := len(p.batches()); n != 5 {
			t.Errorf("%d batches, want 5", n)
		}
	})
}

// The memory for shadow hooks is limited for events of all sizes.
func TestLargeEventsTakeMoreOfTheShadowLimit(t *testing.T) {
	inWorld(t, []schema.Hook{hook("s", shadow), hook("t", shadow)}, func(w *world) {
		w.opt.Shadows = 8
		w.build()
		p := w.peer("remote", "a", 100)
		p.act("s", act{takes: time.Second})
		p.act("t", act{takes: time.Second})
		for _, c := range []struct{ size, run int }{{1, 2}, {3 << 20, 2}, {4 << 20, 1}, {7 << 20, 1}, {1, 2}} {
			before := len(p.batches())
			body := fmt.Appendf(nil, `{"tool_input":{"x":%q}}`, strings.Repeat("x", c.size))
			w.request(&dispatch.Request{Attempt: 1, Deadline: time.Now().Add(time.Minute), Body: body})
			pass(2 * time.Second)
			if n := len(p.batches()) - before; n != c.run {
				t.Errorf("of an event of %d bytes %d shadow hooks ran, want %d", c.size, n, c.run)
			}
		}
	})
}

// Slow shadow hooks leave slots for other hooks.
func TestShadowHooksTakeNoMoreThanHalfOfTheSlots(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed), hook("s", shadow, closed, timeout(10*time.Second))}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("s", act{takes: 5 * time.Second, says: schema.Denied("no")})
		for range 6 {
			v, took := w.ask(time.Minute)
			w.wants(v, schema.None, "x=ok@a")
			w.took(took, 0, 0)
			synctest.Wait()
		}
		pass(time.Minute)
	})
}

// A shadow hook that found no slot has no result, because it would have found one if it
// counted.
func TestAShadowHookWithoutASlotIsDropped(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("s", shadow, closed, timeout(time.Second))}, func(w *world) {
		p := w.peer("remote", "a", 2)
		p.act("x", act{takes: 30 * time.Second})
		go w.ask(time.Minute)
		synctest.Wait()
		p.act("x", act{})
		w.ask(time.Minute)
		pass(5 * time.Second)
		w.wantsEvents("1 shadows dropped")
		pass(time.Minute)
	})
}

// A shadow hook sees the event that it would see if it counted, at its place in the
// order.
func TestShadowHooksSeeRewritesOfEarlierHooks(t *testing.T) {
	hooks := []schema.Hook{hook("s", shadow), hook("x"), hook("t", shadow), hook("y", pool("other")), hook("u", shadow)}
	inWorld(t, hooks, func(w *world) {
		p, q := w.peer("remote", "a", 4), w.peer("other", "b", 4)
		p.act("x", act{says: schema.Rewritten(jsontext.Value(`{"n":1}`))})
		q.act("y", act{says: schema.Rewritten(jsontext.Value(`{"n":2}`))})
		w.ask(time.Minute)
		synctest.Wait()
		if s, t2, u := p.saw("s"), p.saw("t"), p.saw("u"); s != `{"n":0}` || t2 != `{"n":1}` || u != `{"n":2}` {
			t.Errorf("they saw %s, %s and %s", s, t2, u)
		}
	})
}

// shadowCases have the hooks x, s and y, of which s is the shadow hook.
var shadowCases = []struct {
	is      string
	x, s, y schema.Result
	report  string
}{
	{"no hook has an opinion", schema.Result{}, schema.Result{}, schema.Result{}, "continue would be continue"},
	{"it would have denied an allowed call", schema.Result{}, schema.Denied("no"), schema.Allowed(), "allow would be deny"},
	{"an earlier deny ends the chain before it", schema.Denied("no"), schema.Result{Decision: schema.Stop, Value: jsontext.Value(`1`)}, schema.Result{}, "deny would be deny"},
	{"its deny would have come before another's fail", schema.Result{}, schema.Denied("no"), schema.Result{Decision: schema.Fail}, "fail would be deny"},
	{"its ask is more than an allow", schema.Allowed(), schema.Result{Decision: schema.Ask}, schema.Allowed(), "allow would be ask"},
	{"its allow is less than an ask", schema.Result{}, schema.Allowed(), schema.Result{Decision: schema.Ask}, "ask would be ask"},
	{"it would have rewritten the input", schema.Result{}, schema.Rewritten(jsontext.Value(`{"n":7}`)), schema.Result{}, "continue would be continue and rewrites"},
	{"its rewrite is equal to the input", schema.Rewritten(jsontext.Value(`{"n":7}`)), schema.Rewritten(jsontext.Value(`{ "n": 7 }`)), schema.Result{}, "continue would be continue"},
	{"a rewrite after a deny has no effect", schema.Denied("no"), schema.Rewritten(jsontext.Value(`{"n":7}`)), schema.Result{}, "deny would be deny"},
}

func TestTheEffectOfAShadowHookIsReported(t *testing.T) {
	for _, c := range shadowCases {
		t.Run(c.is, func(t *testing.T) {
			inWorld(t, []schema.Hook{hook("x"), hook("s", shadow), hook("y")}, func(w *world) {
				p := w.peer("remote", "a", 4)
				p.act("x", act{says: c.x})
				p.act("s", act{says: c.s})
				p.act("y", act{says: c.y})
				w.ask(time.Minute)
				w.wantsEvents("shadow s=ok, " + c.report)
			})
		})
	}
}

// A shadow hook runs after the verdict, so the rest of the call's time does not limit it.
func TestAShadowHookHasItsWholeTimeout(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("s", shadow, timeout(10*time.Second))}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("x", act{takes: 3 * time.Second})
		p.act("s", act{takes: 9 * time.Second, says: schema.Denied("no")})
		v, _ := w.ask(4 * time.Second)
		w.wants(v, schema.None, "x=ok@a")
		pass(10 * time.Second)
		w.wantsEvents("shadow s=ok, continue would be deny")
	})
}

// For any configuration and answers, the verdict is the same without shadow hooks, and
// the report of each shadow hook agrees with the model of the configuration in which it
// counts.
func TestWouldEqualsTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := gen.Cases(gen.Shape{Pools: stagePools, Conditions: stageConditions}).Draw(rt, "case")
		for i := range c.Config.Hooks { // more shadow hooks than are drawn
			if rapid.IntRange(0, 3).Draw(rt, "shadow") == 0 {
				c.Config.Hooks[i].Mode = schema.Shadow
			}
		}
		p := play{c: c, seed: rapid.Uint64().Draw(rt, "seed"), body: "sound"}
		var d []string
		synctest.Test(t, func(*testing.T) { d = p.shadows() })
		if len(d) > 0 {
			rt.Fatal(strings.Join(d, "\n"))
		}
	})
}

// shadows runs the case and compares the reports of shadow hooks.
func (p *play) shadows() (d []string) {
	s := newStage(p.c, p.c.Table.Script, p.seed)
	got, _, err := s.play(1, false, p.encode())
	if err != nil {
		return []string{err.Error()}
	}
	without := p.c
	without.Config.Hooks = slices.DeleteFunc(slices.Clone(p.c.Config.Hooks), func(h schema.Hook) bool { return h.Mode == schema.Shadow })
	d = append(d, p.judge(without.Config).Diff(got)...)
	for _, report := range s.shadowed {
		enforced := p.c.Config
		enforced.Hooks = slices.Clone(enforced.Hooks)
		i := slices.IndexFunc(enforced.Hooks, func(h schema.Hook) bool { return h.Name == report.Hook.Name })
		enforced.Hooks[i].Mode = schema.Enforce
		want := p.judge(enforced)
		if reached := slices.ContainsFunc(want.Calls, func(c model.Call) bool { return c.Hook == report.Hook.Name }); report.Rewrites && !reached {
			d = append(d, fmt.Sprintf("%q would not have run, and its report has a rewrite", report.Hook.Name))
		}
		if report.Decided != orContinue(got.Decision) || !report.Rewrites && report.Would != orContinue(want.Decision) {
			d = append(d, fmt.Sprintf("%q: %s would be %s; the model says %s", report.Hook.Name, report.Decided, report.Would, want.Decision))
		}
	}
	return d
}

func (p *play) judge(cfg schema.Config) model.Expectation {
	return model.Judge(cfg, p.c.Event, p.c.Table.Script, model.Options{When: holds})
}

func orContinue(d schema.Decision) schema.Decision {
	if d == schema.None {
		return schema.Continue
	}
	return d
}
