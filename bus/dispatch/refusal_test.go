package dispatch_test

import (
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

func status(s schema.Status) schema.BatchReply { return schema.BatchReply{Status: s} }

func TestARefusalSendsTheBatchToAnotherWorkerAtOnce(t *testing.T) {
	for _, s := range []schema.Status{schema.StatusBusy, schema.StatusStale, schema.StatusDraining, "resting"} {
		t.Run(string(s), func(t *testing.T) {
			inWorld(t, []schema.Hook{hook("x", once, closed)}, func(w *world) {
				p := w.peer("remote", "a", 4)
				p.replying(status(s))
				verdict := w.askAside(time.Minute)
				w.peer("remote", "b", 4)
				start := time.Now()
				w.wants(<-verdict, schema.None, "x=ok@b")
				w.took(time.Since(start), 0, 0)
				w.wantsEvents() // it was not lost
			})
		})
	}
}

func TestACallWaitsForAStaleWorkerToLoadTheConfiguration(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.replying(status(schema.StatusStale))
		verdict := w.askAside(time.Minute)
		pass(time.Second)
		p.replying()
		start := time.Now()
		w.wants(<-verdict, schema.None, "x=ok@a")
		w.took(time.Since(start), 0, schema.BeatEvery)
	})
}

func TestAPoolThatStaysStaleHasNoWorkerForTheCall(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed, timeout(time.Second))}, func(w *world) {
		w.peer("remote", "a", 4).replying(status(schema.StatusStale))
		v, took := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=no_worker")
		w.took(took, time.Second, 1500*time.Millisecond)
	})
}

// A worker without a new version still serves calls of an older one.
func TestAStaleWorkerStillServesOtherVersions(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", timeout(time.Second))}, func(w *world) {
		p := w.peer("remote", "a", 4)
		next, err := dispatch.Compile(schema.Config{Version: 2, Hooks: w.hooks}, compileCondition)
		if err != nil {
			t.Fatal(err)
		}
		w.opt.Caller = callerOf(func(b *schema.Batch) schema.Status {
			if b.Version == 2 {
				return schema.StatusStale
			}
			return schema.StatusOK
		}, w)
		w.build()
		r := schema.Routing{Event: schema.PreToolUse, Tool: "Bash"}
		w.d.Dispatch(w.life, next, next.Plan("", r.Event, r.Tool), &dispatch.Request{
			Routing: r, Deadline: time.Now().Add(10 * time.Millisecond), Body: []byte(`{}`),
		})
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@"+p.name)
		w.took(took, 0, 0)
	})
}

func TestADrainingWorkerFinishesItsBatchesAndGetsNoMore(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", once)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("x", act{takes: 2 * time.Second})
		under := w.askAside(time.Minute)
		p.mu.Lock()
		p.draining = true
		p.mu.Unlock()
		p.beat()
		w.peer("remote", "b", 1)
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@b")
		w.wants(<-under, schema.None, "x=ok@a")
	})
}

func TestAPoolWithoutWorkersHasNoWorker(t *testing.T) {
	for policy, want := range map[string]schema.Decision{"open": schema.None, "closed": schema.Deny} {
		t.Run(policy, func(t *testing.T) {
			h := hook("x", timeout(2*time.Second))
			h.FailClosed = policy == "closed"
			inWorld(t, []schema.Hook{h}, func(w *world) {
				v, took := w.ask(time.Minute)
				w.wants(v, want, "x=no_worker")
				w.took(took, 0, 0)
			})
		})
	}
}

func TestFirstContactReachesAWorkerWithoutHeartbeats(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x")}, func(w *world) {
		w.stranger("remote", "a", 4)
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a")
		w.took(took, 0, 0)
	})
}

func TestAWorkerThatRefusedFirstContactIsAskedAfterItsHeartbeat(t *testing.T) {
	for _, s := range []schema.Status{schema.StatusBusy, schema.StatusStale, schema.StatusDraining} {
		t.Run(string(s), func(t *testing.T) {
			inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
				p := w.stranger("remote", "a", 4)
				p.replying(status(s))
				verdict := w.askAside(time.Minute)
				p.replying()
				w.wants(<-verdict, schema.None, "x=ok@a")
			})
		})
	}
}

func TestALocalWorkerThatRefusesIsSkipped(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed, pool(schema.DefaultPool))}, func(w *world) {
		w.local(1).replying(status(schema.StatusStale))
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=no_worker")
		w.peer(schema.DefaultPool, "a", 1)
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a")
		w.took(took, 0, 0)
	})
}

func TestOtherWorkersServeTheDefaultPoolIfTheLocalOneIsFull(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", pool(schema.DefaultPool))}, func(w *world) {
		l := w.local(1)
		p := w.peer(schema.DefaultPool, "a", 1)
		l.act("x", act{takes: time.Second})
		p.act("x", act{takes: 3 * time.Second})
		first, second, third := w.askAside(time.Minute), w.askAside(time.Minute), w.askAside(time.Minute)
		w.wants(<-first, schema.None, "x=ok@local")
		w.wants(<-third, schema.None, "x=ok@local") // it was woken by the first free slot
		w.wants(<-second, schema.None, "x=ok@a")
	})
}

// After a start, the workers reconnect one by one.
func TestAfterAStartACallWaitsForTheFirstWorkerOfItsPool(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		w.members.Expect()
		verdict := w.askAside(time.Minute)
		pass(500 * time.Millisecond)
		w.peer("remote", "a", 1)
		w.wants(<-verdict, schema.None, "x=ok@a")
	})
}

func TestAfterAStartACallWaitsALimitedTime(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		w.members.Expect()
		v, took := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=no_worker")
		w.took(took, 3*schema.BeatEvery, time.Second)
		v, took = w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=no_worker")
		w.took(took, 0, 0)
	})
}
