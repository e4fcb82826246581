package workers_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

func TestDrainFinishesBatchesAndRefusesNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		end := make(chan struct{})
		w := newWorker(library{"hangs": hangs(end), "yes": allows}, config(hook("hangs"), hook("yes")))
		a := newAsker(t, s)
		latest, _ := a.beats()
		svc := attach(t, s, w)
		under := a.async(batch(0, 1))
		synctest.Wait()
		drained := make(chan error)
		go func() { drained <- svc.Drain(context.Background()) }()
		if b := latest(); !b.Draining {
			t.Errorf("%+v", b)
		}
		if r := a.ask(batch(1)); r.Status != schema.StatusDraining {
			t.Errorf("%+v", r)
		}
		select {
		case err := <-drained:
			t.Fatalf("drained with a batch in progress: %v", err)
		default:
		}
		close(end)
		wantKinds(t, <-under, "0:ok")
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if m := a.request(bus.BatchMsg("hook.v1.run.p.w", batch(1))); m != nil {
			t.Errorf("after the end: %s", m.Data)
		}
	})
}

func TestDrainKeepsItsDeadlineAndSkipsHungHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		end := make(chan struct{})
		defer close(end)
		short := hook("hangs")
		short.Timeout = schema.Duration(time.Second)
		w := newWorker(library{"hangs": hangs(end)}, config(hook("hangs"), short))
		svc := attach(t, s, w)
		a := newAsker(t, s)
		wantKinds(t, a.ask(batch(1)), "1:deadline")
		given := a.async(batch(0))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := svc.Drain(ctx); err == nil || !strings.Contains(err.Error(), "waiting for 1 batches under way") {
			t.Errorf("%v", err)
		}
		wantKinds(t, <-given, "0:deadline")
	})
}

func TestStartAndStopFiftyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		nc := bustest.Connect(t, s, "worker:w")
		a := newAsker(t, s)
		for range 50 {
			w := newWorker(library{"yes": allows}, config(hook("yes")))
			svc, err := workers.Attach(nc, w)
			if err != nil {
				t.Fatal(err)
			}
			asked := make(chan *nats.Msg, 1)
			go func() { asked <- a.request(bus.BatchMsg("hook.v1.run.p.w", batch(0))) }()
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if err := svc.Drain(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if m := <-asked; m != nil && !strings.Contains(string(m.Data), `"worker":"w"`) {
				t.Errorf("%s", m.Data)
			}
		}
		<-time.After(time.Second) // the micro framework unsubscribes in the background
		if n := nc.NumSubscriptions(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}
