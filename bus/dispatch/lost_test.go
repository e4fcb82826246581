package dispatch_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// pair adds two workers to the pool remote, with the same script.
func (w *world) pair(acts map[string]act) (a, b *peer) {
	a, b = w.peer("remote", "a", 4), w.peer("remote", "b", 4)
	for name, does := range acts {
		a.act(name, does)
		b.act(name, does)
	}
	return a, b
}

// busyWith returns the worker with the batch, and the other one.
func busyWith(a, b *peer) (has, other *peer) {
	if len(a.batches()) > 0 {
		return a, b
	}
	return b, a
}

func TestIdempotentHooksOfADeadWorkerRunOnceElsewhere(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed), hook("y", closed)}, func(w *world) {
		a, b := w.pair(map[string]act{"x": {takes: 2 * time.Second}})
		verdict := w.askAside(time.Minute)
		dies, lives := busyWith(a, b)
		pass(time.Second)
		start := time.Now()
		dies.kill()
		v := <-verdict
		w.took(time.Since(start), 2*time.Second, 2*time.Second) // noticed at once
		w.wants(v, schema.None, "x=ok@"+lives.name+" y=ok@"+lives.name)
		w.wantsEvents("rerun 2 of remote")
	})
}

func TestFinishedHooksOfADeadWorkerDoNotRunAgain(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("y"), hook("z")}, func(w *world) {
		rewrite := act{says: schema.Rewritten(jsontext.Value(`{"n":1}`))}
		a, b := w.pair(map[string]act{"x": rewrite, "y": {takes: 2 * time.Second}})
		verdict := w.askAside(time.Minute)
		dies, lives := busyWith(a, b)
		pass(schema.BeatEvery + time.Millisecond)
		dies.kill()
		v := <-verdict
		w.wants(v, schema.None, "x=ok@"+dies.name+" y=ok@"+lives.name+" z=ok@"+lives.name)
		w.wantsEvents("rerun 2 of remote")
		if got := lives.batches(); !slices.Equal(got, []string{"y+z"}) {
			t.Errorf("run again: %q", got)
		}
		if string(v.UpdatedInput) != `{"n":1}` || lives.saw("y") != `{"n":1}` {
			t.Errorf("the rewrite from before the loss: verdict %s, y saw %s", v.UpdatedInput, lives.saw("y"))
		}
	})
}

func TestADenyInAHeartbeatIsFinalWhenItsWorkerDies(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("y")}, func(w *world) {
		p := w.stranger("remote", "a", 4)
		p.frozen.Store(true) // it has run x, and dies before it answers
		w.members.Beat(&schema.Beat{Pool: "remote", Worker: "a", Capacity: 4})
		verdict := w.askAside(time.Minute)
		w.members.Beat(&schema.Beat{Pool: "remote", Worker: "a", Capacity: 4, Batches: []schema.BatchProgress{
			{Batch: "1", Outcomes: []schema.Outcome{{Hook: 0, Result: schema.Denied("no")}}},
		}})
		p.kill()
		w.wants(<-verdict, schema.Deny, "x=ok@a")
		w.wantsEvents()
	})
}

func TestOtherHooksOfADeadWorkerFollowTheirPolicy(t *testing.T) {
	for policy, want := range map[string]schema.Decision{"open": schema.None, "closed": schema.Deny} {
		t.Run(policy, func(t *testing.T) {
			h := hook("x", once)
			h.FailClosed = policy == "closed"
			inWorld(t, []schema.Hook{h}, func(w *world) {
				a, b := w.pair(map[string]act{"x": {takes: time.Second}})
				verdict := w.askAside(time.Minute)
				dies, lives := busyWith(a, b)
				dies.kill()
				w.wants(<-verdict, want, "x=lost")
				w.wantsEvents()
				if got := lives.batches(); len(got) > 0 {
					t.Errorf("it ran again: %q", got)
				}
			})
		})
	}
}

func TestASecondLossIsLost(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		a, b := w.pair(map[string]act{"x": {takes: time.Second}})
		c := w.peer("remote", "c", 4)
		c.act("x", act{takes: time.Second})
		verdict := w.askAside(time.Minute)
		for range 2 {
			for _, p := range []*peer{a, b, c} {
				if len(p.batches()) > 0 && !p.dead.Load() {
					p.kill()
				}
			}
			synctest.Wait()
		}
		w.wants(<-verdict, schema.Deny, "x=lost")
		w.wantsEvents("rerun 1 of remote")
		if n := len(a.batches()) + len(b.batches()) + len(c.batches()); n != 2 {
			t.Errorf("asked %d times, want twice", n)
		}
	})
}

func TestALossWithoutAnotherWorkerIsLost(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("x", act{takes: time.Second})
		verdict := w.askAside(time.Minute)
		p.kill()
		w.wants(<-verdict, schema.Deny, "x=lost")
	})
}

// A worker that restarts in time under another name takes over, because the call waits
// for a silent worker.
func TestALaterWorkerTakesOverALostBatch(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		a, b := w.pair(map[string]act{"x": {takes: 10 * time.Second}})
		verdict := w.askAside(time.Minute)
		dies, lives := busyWith(a, b)
		lives.mute.Store(true) // so that the call waits for a silent worker
		pass(time.Second)
		lives.dead.Store(true)
		dies.kill()
		w.peer("remote", "c", 4)
		w.wants(<-verdict, schema.None, "x=ok@c")
	})
}

func TestOnASecondAttemptOnlyIdempotentHooksRun(t *testing.T) {
	hooks := []schema.Hook{hook("open", once), hook("again"), hook("closed", once, closed), hook("never")}
	inWorld(t, hooks, func(w *world) {
		p := w.peer("remote", "a", 4)
		v, _ := w.request(&dispatch.Request{Attempt: 2, Deadline: time.Now().Add(time.Minute)})
		w.wants(v, schema.Deny, "open=lost again=ok@a closed=lost")
		if got := p.batches(); !slices.Equal(got, []string{"again"}) {
			t.Errorf("asked for %q", got)
		}
	})
}

func TestWhenTheAggregatorStopsItsCallsAreLost(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		p := w.peer("remote", "a", 1)
		p.act("x", act{takes: time.Second})
		running, waiting := w.askAside(time.Minute), w.askAside(time.Minute)
		w.end()
		w.wants(<-running, schema.Deny, "x=lost")
		w.wants(<-waiting, schema.Deny, "x=lost")
	})
}

// A worker of one pool can send heartbeats under the name of another pool's worker.
func TestAWorkerMissingInOnePoolLosesNothingInAnother(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", once, readonly), hook("y", readonly, pool("lint"))}, func(w *world) {
		w.peer("remote", "a", 4).act("x", act{takes: 2 * time.Second})
		b := w.peer("lint", "b", 4)
		b.act("y", act{takes: 2 * time.Second})
		verdict := w.askAside(time.Minute)
		pass(time.Second)
		w.peer("lint", "a", 4).dead.Store(true)
		b.kill() // so that y runs again, on the worker that is not there
		w.wants(<-verdict, schema.None, "x=ok@a y=lost")
	})
}
