package dispatch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

func TestAHookHasItsOwnTimeout(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", timeout(time.Second)), hook("y")}, func(w *world) {
		w.pair(map[string]act{"x": {takes: time.Hour}, "y": {takes: time.Second}})
		v, took := w.ask(time.Minute)
		if v.Decision != schema.None || v.ExecutedHooks[0].Outcome != schema.Deadline || v.ExecutedHooks[1].Outcome != schema.OK {
			t.Errorf("%q, %s", v.Decision, trail(v))
		}
		w.took(took, 2*time.Second, 2*time.Second)
	})
}

func TestAShorterDeadlineOfTheEventCounts(t *testing.T) {
	for policy, want := range map[string]schema.Decision{"open": schema.None, "closed": schema.Deny} {
		t.Run(policy, func(t *testing.T) {
			h := hook("x")
			h.FailClosed = policy == "closed"
			inWorld(t, []schema.Hook{h}, func(w *world) {
				w.peer("remote", "a", 4).act("x", act{takes: time.Hour})
				v, took := w.ask(2 * time.Second)
				w.wants(v, want, "x=deadline@a") // the worker reported it, in time
				w.took(took, 1700*time.Millisecond, 1900*time.Millisecond)
			})
		})
	}
}

func TestAWorkerThatDoesNotAnswerInTimeIsNotWaitedFor(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", once, closed)}, func(w *world) {
		w.peer("remote", "a", 4).frozen.Store(true)
		v, took := w.ask(2 * time.Second)
		w.wants(v, schema.Deny, "x=deadline")
		w.took(took, 1900*time.Millisecond, 1900*time.Millisecond)
	})
}

func TestHooksThatCouldNotStartMissTheirDeadline(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("y", pool("other")), hook("z", closed, pool("third"))}, func(w *world) {
		w.peer("remote", "a", 4).frozen.Store(true)
		b, c := w.peer("other", "b", 4), w.peer("third", "c", 4)
		v, took := w.ask(time.Second)
		w.wants(v, schema.Deny, "x=deadline y=deadline z=deadline")
		w.took(took, 950*time.Millisecond, 950*time.Millisecond)
		if len(b.batches())+len(c.batches()) > 0 {
			t.Error("a worker was asked although no time was left")
		}
	})
}

func TestACallPastItsDeadlineIsAnsweredAtOnce(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		p := w.peer("remote", "a", 1)
		p.act("x", act{takes: time.Second})
		w.askAside(time.Minute)
		v, took := w.ask(-time.Second)
		w.wants(v, schema.Deny, "x=deadline")
		w.took(took, 0, 0)
	})
}

// If workers hang, refuse, die or are silent, the verdict is still complete before the
// request's deadline, with time left to send it.
func TestTheVerdictIsAlwaysCompleteBeforeTheDeadline(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var hooks []schema.Hook
		pools := []string{"east", "west", schema.DefaultPool}
		for i := range rapid.IntRange(1, 6).Draw(rt, "hooks") {
			hooks = append(hooks, hook(fmt.Sprint("h", i), func(h *schema.Hook) {
				h.Pool = rapid.SampledFrom(pools).Draw(rt, "pool")
				h.Readonly, h.Idempotent = rapid.Bool().Draw(rt, "readonly"), rapid.Bool().Draw(rt, "idempotent")
				h.Timeout = schema.Duration(rapid.SampledFrom(someTimes()).Draw(rt, "timeout"))
			}))
		}
		left := rapid.SampledFrom(someTimes()).Draw(rt, "left")
		acts := rapid.SliceOfN(rapid.SampledFrom(append(someTimes(), 0)), len(hooks), len(hooks)).Draw(rt, "takes")
		moods := rapid.SliceOfN(rapid.IntRange(0, 5), 6, 6).Draw(rt, "moods")
		local := rapid.Bool().Draw(rt, "with a local worker")
		var fault string
		synctest.Test(t, func(t *testing.T) {
			inBubble(t, 100, hooks, func(w *world) {
				if local {
					w.script(w.local(1).peer, acts)
				}
				for i, pool := range pools {
					w.moody(pool, "a", moods[2*i], acts)
					w.moody(pool, "b", moods[2*i+1], acts)
				}
				v, took := w.request(&dispatch.Request{Deadline: time.Now().Add(left)})
				if left-took < schema.Margin(left) {
					fault = fmt.Sprintf("of %s the verdict took %s", left, took)
				}
				if len(v.ExecutedHooks) != len(hooks) {
					fault = fmt.Sprintf("%d hooks, %s", len(hooks), trail(v))
				}
			})
		})
		if fault != "" {
			rt.Fatal(fault)
		}
	})
}

func someTimes() []time.Duration {
	const ms = time.Millisecond
	return []time.Duration{ms, 10 * ms, 50 * ms, 300 * ms, time.Second, 3 * time.Second, 10 * time.Second}
}

// script sets how long the hooks take.
func (w *world) script(p *peer, takes []time.Duration) {
	for i, d := range takes {
		p.act(w.hooks[i].Name, act{takes: d})
	}
}

// moody adds a worker that is well, frozen, mute, busy, gone or dying.
func (w *world) moody(pool, name string, mood int, takes []time.Duration) {
	p := w.stranger(pool, name, 1)
	w.script(p, takes)
	p.beat()
	switch mood {
	case 1:
		p.frozen.Store(true)
	case 2:
		p.mute.Store(true)
	case 3:
		p.replying(status(schema.StatusBusy))
	case 4:
		p.dead.Store(true)
	case 5:
		time.AfterFunc(100*time.Millisecond, p.kill)
	}
}
