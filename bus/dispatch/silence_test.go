package dispatch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// noticed is the time after which a silent worker must count as silent: the contract says
// a second.
const noticed = time.Second

func TestAHangingWorkersIdempotentHooksRunElsewhereWithinASecond(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		a, b := w.pair(map[string]act{"x": {takes: 100 * time.Millisecond}})
		start := time.Now()
		verdict := w.askAside(time.Minute)
		hangs, lives := busyWith(a, b)
		hangs.frozen.Store(true)
		w.wants(<-verdict, schema.None, "x=ok@"+lives.name)
		w.took(time.Since(start), schema.Missed*schema.BeatEvery, noticed+100*time.Millisecond)
		w.wantsEvents("rerun 1 of remote")
	})
}

func TestWithoutAnotherWorkerASilentOneIsWaitedFor(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("x", act{takes: 10 * time.Second})
		p.mute.Store(true)
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a")
		w.took(took, 10*time.Second, 10*time.Second)
		w.wantsEvents()
	})
}

func TestALaterWorkerReplacesASilentOne(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.frozen.Store(true)
		verdict := w.askAside(time.Minute)
		pass(10 * time.Second) // by now the silent worker is removed
		start := time.Now()
		w.peer("remote", "b", 4)
		w.wants(<-verdict, schema.None, "x=ok@b")
		w.took(time.Since(start), 0, schema.BeatEvery)
	})
}

func TestTheLocalWorkerReplacesASilentOne(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed, pool(schema.DefaultPool))}, func(w *world) {
		l := w.local(1)
		p := w.peer(schema.DefaultPool, "a", 4)
		p.frozen.Store(true)
		l.full.Store(true)
		start := time.Now()
		verdict := w.askAside(time.Minute)
		l.full.Store(false)
		w.wants(<-verdict, schema.None, "x=ok@local")
		w.took(time.Since(start), schema.Missed*schema.BeatEvery, noticed)
	})
}

func TestOtherHooksOfASilentWorkerAreWaitedFor(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", once, closed, timeout(20*time.Second))}, func(w *world) {
		a, b := w.pair(map[string]act{"x": {takes: 15 * time.Second}})
		verdict := w.askAside(time.Minute)
		silent, other := busyWith(a, b)
		silent.mute.Store(true)
		w.wants(<-verdict, schema.None, "x=ok@"+silent.name)
		w.wantsEvents()
		if len(other.batches()) > 0 {
			t.Error("it ran twice")
		}
	})
}

func TestOtherHooksOfAHangingWorkerMissTheirDeadline(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", once, closed, timeout(2*time.Second))}, func(w *world) {
		a, b := w.pair(map[string]act{"x": {takes: time.Second}})
		start := time.Now()
		verdict := w.askAside(time.Minute)
		hangs, _ := busyWith(a, b)
		hangs.frozen.Store(true)
		w.wants(<-verdict, schema.Deny, "x=deadline")
		w.took(time.Since(start), 2*time.Second, 2500*time.Millisecond)
		w.wantsEvents()
	})
}

// The worker sends heartbeats but has lost the batch, for example with its connection.
func TestABatchMissingInTwoHeartbeatsRunsAgain(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		w.peer("remote", "a", 4)
		w.opt.Caller = loses(1, w)
		w.build()
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a") // the same worker may get it again
		w.took(took, schema.BeatEvery, noticed)
		w.wantsEvents("rerun 1 of remote")
	})
}

func TestOtherBatchesMissingInHeartbeatsDoNotRunAgain(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", once)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.forgets.Store(true)
		p.act("x", act{takes: 10 * time.Second})
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a")
		w.took(took, 10*time.Second, 10*time.Second)
	})
}

// Two heartbeats at once, one of them because of a loaded configuration, may both have
// been sent before the batch arrived.
func TestTwoHeartbeatsAtOnceCountOnce(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x")}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("x", act{takes: time.Second})
		verdict := w.askAside(time.Minute)
		p.forgets.Store(true)
		for range 5 {
			p.beat()
		}
		p.forgets.Store(false)
		w.wants(<-verdict, schema.None, "x=ok@a")
		w.wantsEvents()
	})
}

func TestAStoppedAggregatorDoesNotCountSilence(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", pool(schema.DefaultPool))}, func(w *world) {
		l := w.local(1)
		l.full.Store(true)
		p := w.peer(schema.DefaultPool, "a", 1)
		p.act("x", act{takes: 10 * time.Second})
		verdict := w.askAside(time.Minute)
		l.full.Store(false) // it could run x
		pass(time.Second + 60*time.Millisecond)
		w.stopped.Store(true)
		pass(5 * time.Second) // the process was stopped, and ticks before it receives the next heartbeat
		w.stopped.Store(false)
		w.wants(<-verdict, schema.None, "x=ok@a")
		w.wantsEvents()
	})
}

func TestASilentWorkerGetsNothingUntilItsNextHeartbeat(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x")}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.mute.Store(true)
		pass(noticed)
		verdict := w.askAside(time.Minute)
		if len(p.batches()) > 0 {
			t.Error("a silent worker was asked")
		}
		p.mute.Store(false)
		start := time.Now()
		w.wants(<-verdict, schema.None, "x=ok@a")
		w.took(time.Since(start), 0, schema.BeatEvery)
	})
}

// The worker of a first contact is unknown until a heartbeat names the batch.
func TestASilentFirstContactIsAskedAgain(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		first := w.stranger("remote", "a", 4)
		first.frozen.Store(true)
		start := time.Now()
		verdict := w.askAside(time.Minute)
		first.dead.Store(true)
		second := w.stranger("remote", "b", 4)
		second.mute.Store(true)
		w.wants(<-verdict, schema.None, "x=ok@b")
		w.took(time.Since(start), schema.BeatEvery, noticed+schema.BeatEvery)
		w.wantsEvents("rerun 1 of remote")
	})
}

func TestHeartbeatsNameTheWorkerOfAFirstContact(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed), hook("y")}, func(w *world) {
		p := w.stranger("remote", "a", 4)
		p.act("y", act{takes: 10 * time.Second})
		verdict := w.askAside(time.Minute)
		pass(noticed)
		w.peer("remote", "b", 4)
		p.kill()
		w.wants(<-verdict, schema.None, "x=ok@a y=ok@b")
		w.wantsEvents("rerun 1 of remote")
	})
}

func TestAnAnswerAfterARerunIsDropped(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x")}, func(w *world) {
		a, b := w.pair(nil)
		for _, p := range []*peer{a, b} {
			p.act("x", act{takes: 5 * time.Second, says: schema.Denied("from " + p.name)})
		}
		verdict := w.askAside(time.Minute)
		slow, fast := busyWith(a, b)
		slow.mute.Store(true)
		v := <-verdict
		synctest.Wait()
		w.wants(v, schema.Deny, "x=ok@"+fast.name)
		if v.Reason != "from "+fast.name || len(v.ExecutedHooks) != 1 {
			t.Errorf("%+v", v)
		}
	})
}

// An answer in time always counts, even of a worker that counts as silent.
func TestASilentWorkersAnswerBeforeTheRerunsCounts(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", once, closed)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.act("x", act{takes: 5 * time.Second, says: schema.Denied("no")})
		p.mute.Store(true)
		v, took := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=ok@a")
		w.took(took, 5*time.Second, 5*time.Second)
	})
}
