package workers_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

func TestAServiceRunsBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		attach(t, s, newWorker(library{"yes": allows, "counts": counting}, config(hook("counts"), hook("yes"))))
		a := newAsker(t, s)
		r := a.ask(batch(0, 1))
		wantKinds(t, r, "0:ok 1:ok")
		if r.Worker != "w" || string(r.Outcomes[0].Result.UpdatedInput) != `{"n":1}` {
			t.Errorf("%+v", r)
		}
		wantKinds(t, a.send(bus.BatchMsg("hook.v1.run.p", batch(1))), "1:ok")
	})
}

func TestAServiceAnswersMalformedBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		attach(t, s, newWorker(library{"yes": allows}, config(hook("yes"))))
		a := newAsker(t, s)
		for name, spoil := range map[string]func(h nats.Header){
			"no hooks":         func(h nats.Header) { delete(h, schema.HeaderHooks) },
			"hooks twice":      func(h nats.Header) { h[schema.HeaderHooks] = []string{"0", "0"} },
			"no version":       func(h nats.Header) { delete(h, schema.HeaderConfig) },
			"no time left":     func(h nats.Header) { h.Set(schema.HeaderLeft, "0s") },
			"no event":         func(h nats.Header) { delete(h, schema.HeaderEvent) },
			"an unknown event": func(h nats.Header) { h.Set(schema.HeaderEvent, "PreCoffee") },
			"no agent":         func(h nats.Header) { delete(h, schema.HeaderAgent) },
			"an id of no kind": func(h nats.Header) { h.Set(schema.HeaderID, "7") },
			"no batch id":      func(h nats.Header) { delete(h, schema.HeaderBatch) },
		} {
			m := bus.BatchMsg("hook.v1.run.p.w", batch(0))
			spoil(m.Header)
			if r := a.send(m); r.Status != schema.StatusMalformed || r.Error == "" || len(r.Outcomes) != 0 {
				t.Errorf("%s: %+v", name, r)
			}
		}
		wantKinds(t, a.ask(batch(0)), "0:ok")
	})
}

func TestHeartbeatsReportLoadAndFinishedOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		end := make(chan struct{})
		w := newWorker(library{"yes": allows, "hangs": hangs(end)}, config(hook("yes"), hook("hangs"), hook("missing")), capacity(2))
		a := newAsker(t, s)
		latest, count := a.beats()
		attach(t, s, w)
		if b := latest(); b.Worker != "w" || b.Pool != "p" || b.Capacity != 2 || b.InFlight != 0 || len(b.Versions) != 1 || len(b.Batches) != 0 || b.LoadErrors["missing"] == "" {
			t.Errorf("idle: %+v", b)
		}
		reply := a.async(batch(0, 1))
		before := count()
		<-time.After(10*time.Second + time.Millisecond)
		if n := count() - before; n != 40 {
			t.Errorf("%d beats in ten seconds", n)
		}
		b := latest()
		if b.InFlight != 1 || len(b.Batches) != 1 || b.Batches[0].Batch != "b1" || len(b.Batches[0].Outcomes) != 1 || b.Batches[0].Outcomes[0].Result.Decision != schema.Allow {
			t.Errorf("in progress: %+v", b)
		}
		close(end)
		wantKinds(t, <-reply, "0:ok 1:ok")
		<-time.After(schema.BeatEvery)
		if b := latest(); b.InFlight != 0 || len(b.Batches) != 0 {
			t.Errorf("afterwards: %+v", b)
		}
	})
}

func TestHeartbeatsOmitOutcomesThatDoNotFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		end := make(chan struct{})
		large := func(context.Context, *schema.Event) (schema.Result, error) {
			return schema.Result{Reason: strings.Repeat("x", 200<<10)}, nil
		}
		w := newWorker(library{"large": large, "hangs": hangs(end)}, config(hook("large"), hook("large"), hook("hangs")))
		a := newAsker(t, s)
		latest, _ := a.beats()
		attach(t, s, w)
		reply := a.async(batch(0, 1, 2))
		<-time.After(time.Second)
		if b := latest(); len(b.Batches) != 1 || len(b.Batches[0].Outcomes) != 1 {
			t.Errorf("%d batches", len(b.Batches))
		}
		close(end)
		<-reply
	})
}

func TestAFullServiceIsBusyAndKeepsServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		end := make(chan struct{})
		attach(t, s, newWorker(library{"hangs": hangs(end)}, config(hook("hangs")), capacity(1)))
		a := newAsker(t, s)
		first := a.async(batch(0))
		synctest.Wait()
		if r := a.ask(batch(0)); r.Status != schema.StatusBusy || r.Worker != "w" {
			t.Errorf("%+v", r)
		}
		close(end)
		wantKinds(t, <-first, "0:ok")
		wantKinds(t, a.ask(batch(0)), "0:ok")
	})
}

func TestTooLargeAnswersAreTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		large := func(context.Context, *schema.Event) (schema.Result, error) {
			return schema.Result{Reason: strings.Repeat("\x01", 700<<10)}, nil // six times the size as JSON
		}
		no := func(context.Context, *schema.Event) (schema.Result, error) { return schema.Denied("no"), nil }
		w := newWorker(library{"large": large, "no": no}, config(hook("large"), hook("large"), hook("no")))
		attach(t, s, w)
		r := newAsker(t, s).ask(batch(0, 1, 2))
		wantKinds(t, r, "0:error 1:error 2:error")
		if d := r.Outcomes[2].Result; d.Decision != schema.Deny || d.Reason != "no" || !strings.Contains(r.Outcomes[0].Error, "larger than the limit of") {
			t.Errorf("%+v", r)
		}
	})
}

func TestAServiceServesTwoPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		other := hook("yes")
		other.Pool = "q/1"
		w := newWorker(library{"yes": allows}, config(hook("yes"), other), func(o *workers.Options) { o.Pools = []string{"p", "q/1"} })
		attach(t, s, w)
		a := newAsker(t, s)
		wantKinds(t, a.ask(batch(0)), "0:ok")
		wantKinds(t, a.send(bus.BatchMsg("hook.v1.run.q=2F1.w", batch(1))), "1:ok")
	})
}

// A count records the calls of a pace.
type count struct{ most, ends, left atomic.Int64 }

func (c *count) Begun(active int64) { c.most.Store(max(c.most.Load(), active)) }
func (c *count) Ended(left int64)   { c.ends.Add(1); c.left.Store(left) }

func TestAServiceReportsItsLoadToThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		var heard count
		end := make(chan struct{})
		attach(t, s, newWorker(library{"hangs": hangs(end)}, config(hook("hangs")), func(o *workers.Options) { o.Pace = &heard }))
		a := newAsker(t, s)
		first, second := a.async(batch(0)), a.async(batch(0))
		synctest.Wait()
		if most, ends := heard.most.Load(), heard.ends.Load(); most != 2 || ends != 0 {
			t.Errorf("%d are in progress, and %d ended", most, ends)
		}
		close(end)
		<-first
		<-second
		synctest.Wait()
		if ends, left := heard.ends.Load(), heard.left.Load(); ends != 2 || left != 0 {
			t.Errorf("%d ended, %d are left", ends, left)
		}
	})
}

func TestAttachRejectsAnInvalidPoolName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		nc := bustest.Connect(t, s, "w")
		w := workers.New(workers.Options{Name: "w", Pools: []string{"p", ""}})
		if _, err := workers.Attach(nc, w); err == nil {
			t.Error("it is served")
		}
		if n := nc.NumSubscriptions(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}
