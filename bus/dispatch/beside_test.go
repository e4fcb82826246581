package dispatch_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// pools gives each pool one worker of the pool's name.
func (w *world) pools(names ...string) map[string]*peer {
	out := map[string]*peer{}
	for _, name := range names {
		out[name] = w.peer(name, name, 4)
	}
	return out
}

func TestReadonlyBatchesOfSeveralPoolsRunSideBySide(t *testing.T) {
	hooks := []schema.Hook{hook("x", readonly, pool("a")), hook("y", readonly, pool("b")), hook("z", readonly, pool("c"))}
	inWorld(t, hooks, func(w *world) {
		p := w.pools("a", "b", "c")
		p["a"].act("x", act{takes: 3 * time.Second})
		p["b"].act("y", act{takes: 2 * time.Second})
		p["c"].act("z", act{takes: time.Second})
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a y=ok@b z=ok@c")
		w.took(took, 3*time.Second, 3*time.Second)
	})
}

func TestAnEarlyDenyDoesNotWaitForSlowerHooksAfterIt(t *testing.T) {
	hooks := []schema.Hook{hook("x", readonly, pool("a")), hook("y", readonly, pool("b")), hook("z", readonly, pool("c"))}
	inWorld(t, hooks, func(w *world) {
		p := w.pools("a", "b", "c")
		p["a"].act("x", act{takes: time.Second})
		p["b"].act("y", act{takes: 2 * time.Second, says: schema.Denied("no")})
		p["c"].act("z", act{takes: 9 * time.Second, says: schema.Denied("too late")})
		v, took := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=ok@a y=ok@b")
		w.took(took, 2*time.Second, 2*time.Second)
		pass(10 * time.Second)
		w.wantsEvents("aside z=ok")
		if v.Reason != "no" {
			t.Errorf("reason %q", v.Reason)
		}
	})
}

// The first deny in registration order counts, not the fastest.
func TestADenyWaitsForSlowerHooksBeforeIt(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", readonly, pool("a")), hook("y", readonly, pool("b"))}, func(w *world) {
		p := w.pools("a", "b")
		p["a"].act("x", act{takes: 2 * time.Second, says: schema.Denied("first")})
		p["b"].act("y", act{says: schema.Denied("fast")})
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=ok@a")
		w.wantsEvents("aside y=ok")
		if v.Reason != "first" {
			t.Errorf("reason %q", v.Reason)
		}
	})
}

func TestOutcomesAfterADenyInItsBatchAreReportedAside(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", readonly), hook("y", readonly)}, func(w *world) {
		w.peer("remote", "a", 4).replying(schema.BatchReply{Outcomes: []schema.Outcome{
			{Hook: 0, Result: schema.Denied("no")}, {Hook: 1, Result: schema.Denied("neither")},
		}})
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=ok@a")
		w.wantsEvents("aside y=ok")
	})
}

func TestNothingIsDroppedOnThePostEvents(t *testing.T) {
	post := at(schema.PostToolUse)
	hooks := []schema.Hook{hook("x", readonly, post, pool("a")), hook("y", readonly, post, pool("b")), hook("z", post, pool("c"))}
	inWorld(t, hooks, func(w *world) {
		p := w.pools("a", "b", "c")
		p["a"].act("x", act{says: schema.Denied("feedback")})
		p["b"].act("y", act{says: schema.Result{Decision: schema.Fail, Reason: "worse"}})
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.Fail, "x=ok@a y=ok@b z=ok@c")
		w.wantsEvents()
	})
}

// A rewriting hook runs alone, and later hooks see the rewritten input.
func TestRewritesChainAcrossPools(t *testing.T) {
	rewrites := func(n int) act {
		return act{says: schema.Rewritten(jsontext.Value(fmt.Sprintf(`{"n":%d}`, n))), takes: time.Second}
	}
	hooks := []schema.Hook{hook("x", pool("a")), hook("y", pool("b")), hook("z", readonly, pool("c"))}
	inWorld(t, hooks, func(w *world) {
		p := w.pools("a", "b", "c")
		p["a"].act("x", rewrites(1))
		p["b"].act("y", rewrites(2))
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a y=ok@b z=ok@c")
		w.took(took, 2*time.Second, 2*time.Second)
		if y, z := p["b"].saw("y"), p["c"].saw("z"); y != `{"n":1}` || z != `{"n":2}` || string(v.UpdatedInput) != z {
			t.Errorf("y saw %s, z saw %s, the verdict is %s", y, z, v.UpdatedInput)
		}
	})
}

func TestFailingConditionsCountAsTrueAndFalseOnesSkipTheHook(t *testing.T) {
	hooks := []schema.Hook{
		hook("x", given("false")), hook("y", given("fails")), hook("z", given("panics")),
		hook("s", shadow, given("panics")), hook("t", shadow, given("false")),
	}
	inWorld(t, hooks, func(w *world) {
		p := w.peer("remote", "a", 4)
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.None, "y=ok@a z=ok@a")
		synctest.Wait()
		slices.Sort(w.events)
		w.wantsEvents("condition of s failed", "condition of y failed", "condition of z failed", "shadow s=ok, continue would be continue")
		if got := p.batches(); slices.Contains(got, "x") || slices.Contains(got, "t") {
			t.Errorf("asked for %q", got)
		}
	})
}

// Calls are spread over the workers, and no worker exceeds its capacity.
func TestCallsSpreadOverTheWorkersOfAPool(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x")}, func(w *world) {
		var peers []*peer
		for i, capacity := range []int{1, 2, 5} {
			p := w.peer("remote", fmt.Sprint(i), capacity)
			p.act("x", act{takes: time.Second})
			peers = append(peers, p)
		}
		var calls []<-chan schema.Verdict
		for range 24 {
			calls = append(calls, w.askAside(time.Minute))
		}
		start := time.Now()
		for _, c := range calls {
			if v := <-c; v.ExecutedHooks[0].Outcome != schema.OK {
				t.Error(trail(v))
			}
		}
		w.took(time.Since(start), 3*time.Second, 3*time.Second) // 24 calls, 8 at a time
		for _, p := range peers {
			if p.most != p.capacity || len(p.batches()) != 3*p.capacity {
				t.Errorf("worker %s of capacity %d had %d at once, %d in all", p.name, p.capacity, p.most, len(p.batches()))
			}
		}
	})
}

func TestAWorkerThatHoldsTheVersionIsPreferred(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x")}, func(w *world) {
		old := w.stranger("remote", "old", 100)
		old.versions = []uint64{7}
		old.beat()
		w.peer("remote", "new", 5)
		for range 20 {
			v, _ := w.ask(time.Minute)
			w.wants(v, schema.None, "x=ok@new")
		}
	})
}

// If a batch of a wave is lost, the other batches of the wave are not.
func TestALossAffectsOnlyItsBatch(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", readonly, pool("a")), hook("y", readonly, closed, pool("b"))}, func(w *world) {
		p := w.pools("a", "b")
		p["a"].act("x", act{takes: time.Second})
		p["b"].act("y", act{takes: 2 * time.Second})
		verdict := w.askAside(time.Minute)
		p["a"].kill()
		w.wants(<-verdict, schema.None, "x=lost y=ok@b")
	})
}
