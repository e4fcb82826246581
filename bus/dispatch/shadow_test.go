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
	inWorld(t, []schema.Hook{hook("s", shadow, closed), hook("x"), hook("t", shadow, pool("nobody"), closed)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("s", act{takes: 5 * time.Second, says: schema.Denied("would have")})
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a")
		w.took(took, 0, 0)
		w.wantsTold("shadow t=no_worker, continue would be deny")
		pass(6 * time.Second)
		w.wantsTold("shadow t=no_worker, continue would be deny", "shadow s=ok, continue would be deny")
	})
}

// What one shadow hook would have decided hides nothing of what the next one
// would have.
func TestShadowHooksRunByThemselves(t *testing.T) {
	inWorld(t, []schema.Hook{hook("s", shadow), hook("t", shadow)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("s", act{says: schema.Denied("would have")})
		p.act("t", act{takes: time.Second})
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "")
		w.took(took, 0, 0)
		pass(2 * time.Second)
		w.wantsTold("shadow s=ok, continue would be deny", "shadow t=ok, continue would be continue")
	})
}

func TestShadowHooksAreBounded(t *testing.T) {
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
		for _, s := range w.told {
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
		w.ask(time.Minute) // there is room again
		synctest.Wait()
		if n := len(p.batches()); n != 5 {
			t.Errorf("%d batches, want 5", n)
		}
	})
}

// What is kept for shadow hooks is bounded however large events are.
func TestLargeEventsTakeMoreOfTheRoomForShadowHooks(t *testing.T) {
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

// However long shadow hooks take, there is a slot for hooks that count.
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

// What a shadow hook would have said that found no slot, nobody knows: it would
// have had one if it counted.
func TestAShadowHookWithoutASlotIsDropped(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("s", shadow, closed, timeout(time.Second))}, func(w *world) {
		p := w.peer("remote", "a", 2)
		p.act("x", act{takes: 30 * time.Second})
		go w.ask(time.Minute)
		synctest.Wait()
		p.act("x", act{})
		w.ask(time.Minute)
		pass(5 * time.Second)
		w.wantsTold("1 shadows dropped")
		pass(time.Minute)
	})
}

// A shadow hook is asked about what it would be asked about if it counted, at
// its place in the order.
func TestShadowHooksSeeTheInputAsTheHooksBeforeThemLeftIt(t *testing.T) {
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

// shadowCases: the hooks x, s and y, of which s is the shadow hook.
var shadowCases = []struct {
	is      string
	x, s, y schema.Result
	told    string
}{
	{"no hook has an opinion", schema.Result{}, schema.Result{}, schema.Result{}, "continue would be continue"},
	{"it would have denied what went through", schema.Result{}, schema.Denied("no"), schema.Allowed(), "allow would be deny"},
	{"what was denied before it, it never hears", schema.Denied("no"), schema.Result{Decision: schema.Stop, Value: jsontext.Value(`1`)}, schema.Result{}, "deny would be deny"},
	{"its deny would have come before another's fail", schema.Result{}, schema.Denied("no"), schema.Result{Decision: schema.Fail}, "fail would be deny"},
	{"its ask is more than an allow", schema.Allowed(), schema.Result{Decision: schema.Ask}, schema.Allowed(), "allow would be ask"},
	{"its allow is less than an ask", schema.Result{}, schema.Allowed(), schema.Result{Decision: schema.Ask}, "ask would be ask"},
	{"it would have rewritten the input", schema.Result{}, schema.Rewritten(jsontext.Value(`{"n":7}`)), schema.Result{}, "continue would be continue and rewrites"},
	{"it hands back what it was given, in other words", schema.Rewritten(jsontext.Value(`{"n":7}`)), schema.Rewritten(jsontext.Value(`{ "n": 7 }`)), schema.Result{}, "continue would be continue"},
	{"a rewrite behind a deny reaches nobody", schema.Denied("no"), schema.Rewritten(jsontext.Value(`{"n":7}`)), schema.Result{}, "deny would be deny"},
}

func TestWhatAShadowHookWouldHaveChangedIsTold(t *testing.T) {
	for _, c := range shadowCases {
		t.Run(c.is, func(t *testing.T) {
			inWorld(t, []schema.Hook{hook("x"), hook("s", shadow), hook("y")}, func(w *world) {
				p := w.peer("remote", "a", 4)
				p.act("x", act{says: c.x})
				p.act("s", act{says: c.s})
				p.act("y", act{says: c.y})
				w.ask(time.Minute)
				w.wantsTold("shadow s=ok, " + c.told)
			})
		})
	}
}

// The verdict is there before a shadow hook is asked, so that what is left of
// the call's time is no bound for it.
func TestAShadowHookHasItsWholeTimeout(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("s", shadow, timeout(10*time.Second))}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("x", act{takes: 3 * time.Second})
		p.act("s", act{takes: 9 * time.Second, says: schema.Denied("no")})
		v, _ := w.ask(4 * time.Second)
		w.wants(v, schema.None, "x=ok@a")
		pass(10 * time.Second)
		w.wantsTold("shadow s=ok, continue would be deny")
	})
}

// Whatever is configured and answered: the verdict is what it is without shadow
// hooks, and each shadow hook is held against what the model says of the same
// configuration in which it counts.
func TestWouldEqualsTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := gen.Cases(gen.Shape{Pools: stagePools, Conditions: stageConditions}).Draw(rt, "case")
		for i := range c.Config.Hooks { // more of them than are drawn by themselves
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

// shadows plays the case and compares what is told of shadow hooks.
func (p *play) shadows() (d []string) {
	s := newStage(p.c, p.c.Table.Script, p.seed)
	got, _, err := s.play(1, false, p.encode())
	if err != nil {
		return []string{err.Error()}
	}
	without := p.c
	without.Config.Hooks = slices.DeleteFunc(slices.Clone(p.c.Config.Hooks), func(h schema.Hook) bool { return h.Mode == schema.Shadow })
	d = append(d, p.judge(without.Config).Diff(got)...)
	for _, told := range s.shadowed {
		enforced := p.c.Config
		enforced.Hooks = slices.Clone(enforced.Hooks)
		i := slices.IndexFunc(enforced.Hooks, func(h schema.Hook) bool { return h.Name == told.Hook.Name })
		enforced.Hooks[i].Mode = schema.Enforce
		want := p.judge(enforced)
		if reached := slices.ContainsFunc(want.Calls, func(c model.Call) bool { return c.Hook == told.Hook.Name }); told.Rewrites && !reached {
			d = append(d, fmt.Sprintf("%q would not have run, and is said to rewrite", told.Hook.Name))
		}
		if told.Decided != orContinue(got.Decision) || !told.Rewrites && told.Would != orContinue(want.Decision) {
			d = append(d, fmt.Sprintf("%q: %s would be %s; the model says %s", told.Hook.Name, told.Decided, told.Would, want.Decision))
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
