package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

func TestACallWaitsForABusyPoolAndThenFollowsItsPolicy(t *testing.T) {
	for policy, want := range map[string]schema.Decision{"open": schema.None, "closed": schema.Deny} {
		t.Run(policy, func(t *testing.T) {
			h := hook("x", timeout(2*time.Second))
			h.FailClosed = policy == "closed"
			inWorld(t, []schema.Hook{h}, func(w *world) {
				a, b := w.pair(nil)
				a.replying(status(schema.StatusBusy))
				b.replying(status(schema.StatusBusy))
				v, took := w.ask(time.Minute)
				w.wants(v, want, "x=busy")
				w.took(took, 2*time.Second, 2500*time.Millisecond)
			})
		})
	}
}

func TestABusyWorkerGetsNothingUntilItsNextHeartbeat(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", timeout(2*time.Second))}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.replying(status(schema.StatusBusy))
		_, took := w.ask(time.Minute)
		if n, most := len(p.batches()), int(took/schema.BeatEvery)+1; n > most {
			t.Errorf("asked %d times in %s, want at most once per beat", n, took)
		}
	})
}

func TestACallOverTheQueuesLimitIsBusyAtOnce(t *testing.T) {
	inWorldWithQueue(t, 2, []schema.Hook{hook("x")}, func(w *world) {
		p := w.peer("remote", "a", 1)
		p.act("x", act{takes: time.Second})
		var calls []<-chan schema.Verdict
		for range 3 { // one runs, two wait
			calls = append(calls, w.askAside(time.Minute))
		}
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=busy")
		w.took(took, 0, 0)
		for _, c := range calls {
			w.wants(<-c, schema.None, "x=ok@a")
		}
	})
}

// A refused call that returns to the queue is not turned away, and keeps its place before
// later calls.
func TestACallThatHasWaitedKeepsItsPlaceInAFullQueue(t *testing.T) {
	inWorldWithQueue(t, 1, []schema.Hook{hook("x")}, func(w *world) {
		w.peer("remote", "a", 1).act("x", act{takes: time.Second})
		refuse, sent := make(chan struct{}), 0
		w.opt.Caller = callerFunc(func(ctx context.Context, pool, worker string, b *schema.Batch) (schema.BatchReply, error) {
			if sent++; sent == 2 {
				<-refuse
				return status(schema.StatusBusy), nil
			}
			return w.Call(ctx, pool, worker, b)
		})
		w.build()
		start := time.Now()
		first, second := w.askAside(time.Minute), w.askAside(time.Minute)
		w.wants(<-first, schema.None, "x=ok@a")
		synctest.Wait() // the second one is being refused
		third := w.askAside(time.Minute)
		close(refuse)
		w.wants(<-second, schema.None, "x=ok@a")
		w.took(time.Since(start), 2*time.Second, 2500*time.Millisecond)
		w.wants(<-third, schema.None, "x=ok@a")
		w.took(time.Since(start), 3*time.Second, 3500*time.Millisecond)
	})
}

func TestCallsAreServedInOrderOfArrival(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x")}, func(w *world) {
		p := w.peer("remote", "a", 1)
		p.act("x", act{takes: time.Second})
		var mu sync.Mutex
		var order []int
		var calls sync.WaitGroup
		for i := range 10 {
			calls.Go(func() {
				w.ask(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait()
		}
		calls.Wait()
		if !slices.IsSorted(order) {
			t.Errorf("served in the order %v", order)
		}
	})
}

// With many calls, few slots and no further heartbeats, a lost wake-up would leave calls
// waiting until their deadline.
func TestNoWakeUpIsLost(t *testing.T) {
	hooks := []schema.Hook{hook("x"), hook("y", pool(schema.DefaultPool))}
	inWorldWithQueue(t, 1000, hooks, func(w *world) {
		l := w.local(2)
		for _, p := range []*peer{w.peer("remote", "a", 1), w.peer("remote", "b", 2), w.peer(schema.DefaultPool, "c", 1)} {
			p.mute.Store(true)
		}
		w.stopped.Store(true) // no ticks, which would find lost wake-ups
		var calls sync.WaitGroup
		var faults atomic.Int32
		start := time.Now()
		for i := range 300 {
			calls.Go(func() {
				v, _ := w.ask(10 * time.Minute)
				if i%7 == 0 {
					pass(time.Duration(i) * time.Microsecond)
				}
				if strings.Contains(trail(v), "busy") || len(v.ExecutedHooks) != 2 {
					faults.Add(1)
				}
			})
		}
		calls.Wait()
		if n := faults.Load(); n > 0 || time.Since(start) > time.Minute {
			t.Errorf("%d calls were not served; all took %s", n, time.Since(start))
		}
		if l.most > 2 {
			t.Errorf("the local worker ran %d batches at once", l.most)
		}
	})
}

// The same outside a bubble, where goroutines really race.
func TestNoWakeUpIsLostInARace(t *testing.T) {
	members := dispatch.NewMembers(1000)
	free := make(chan struct{}, 1)
	hooks := []schema.Hook{hook("x", pool(schema.DefaultPool))}
	w := &world{t: t, hooks: hooks, members: members, life: t.Context()}
	w.opt = dispatch.Options{
		Members: members, NewID: func() string { return fmt.Sprint(w.ids.Add(1)) }, Caller: w,
		Local: tryFunc(func(b *schema.Batch) (schema.BatchReply, bool) {
			select {
			case free <- struct{}{}:
			default:
				return schema.BatchReply{}, false
			}
			<-free
			members.Freed(schema.DefaultPool)
			return schema.BatchReply{Worker: "local", Outcomes: []schema.Outcome{{Hook: b.Hooks[0]}}}, true
		}),
	}
	w.build()
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			for range 200 {
				if v, took := w.ask(time.Minute); trail(v) != "x=ok@local" {
					t.Errorf("%s after %s", trail(v), took)
					return
				}
			}
		})
	}
	calls.Wait()
}

// The slot becomes free before the call is queued, and no other one becomes free later.
func TestALocalSlotFreedBeforeQueueingIsTaken(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", pool(schema.DefaultPool))}, func(w *world) {
		l := w.local(1)
		tried := 0
		w.opt.Local = tryFunc(func(b *schema.Batch) (schema.BatchReply, bool) {
			if tried++; tried == 1 {
				w.members.Freed(schema.DefaultPool)
				return schema.BatchReply{}, false
			}
			return l.Try(w.life, b)
		})
		w.build()
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@local")
		w.took(took, 0, 0)
	})
}

// A call may give up at the moment in which it is given a slot.
func TestASlotOfACallThatGaveUpGoesToTheNext(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", timeout(time.Second))}, func(w *world) {
		p := w.peer("remote", "a", 1)
		p.mute.Store(true)
		w.stopped.Store(true)
		p.act("x", act{takes: 500 * time.Millisecond})
		var calls []<-chan schema.Verdict
		for range 20 { // all give up at the same instant, most of them while slots are passed on
			calls = append(calls, w.askAside(time.Minute))
		}
		served := 0
		for _, c := range calls {
			if v := <-c; trail(v) == "x=ok@a" {
				served++
			}
		}
		if served < 2 {
			t.Errorf("%d calls were served in a second of half a second each", served)
		}
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a")
	})
}
