package workers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

func TestAFullWorkerIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		w := newWorker(library{"hangs": hangs(end)}, config(hook("hangs")), capacity(1))
		first := make(chan schema.BatchReply)
		go func() { first <- w.Run(t.Context(), batch(0)) }()
		synctest.Wait()
		if r := w.Run(t.Context(), batch(0)); r.Status != schema.StatusBusy {
			t.Errorf("%+v", r)
		}
		if _, ok := w.Try(t.Context(), batch(0)); ok {
			t.Error("a full worker ran a batch")
		}
		close(end)
		wantKinds(t, <-first, "0:ok")
		wantKinds(t, w.Run(t.Context(), batch(0)), "0:ok")
	})
}

func TestAHungHandlerIsAnsweredInTimeAndKeepsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		freed := make(chan struct{}, 9)
		w := newWorker(library{"hangs": hangs(end)}, config(hook("hangs")), capacity(1),
			func(o *workers.Options) { o.Freed = func() { freed <- struct{}{} } })
		b := batch(0)
		b.Left = 10 * time.Second
		start := time.Now()
		r := w.Run(t.Context(), b)
		wantKinds(t, r, "0:deadline")
		if took := time.Since(start); took != 9500*time.Millisecond {
			t.Errorf("it was answered after %v; a worker keeps a margin", took)
		}
		synctest.Wait()
		if r := w.Run(t.Context(), batch(0)); r.Status != schema.StatusBusy || len(freed) != 0 {
			t.Errorf("while the handler hangs: %+v, %d slots freed", r, len(freed))
		}
		close(end)
		synctest.Wait()
		if n := w.Beat("p").InFlight; n != 0 || len(freed) != 1 {
			t.Errorf("%d in flight, %d freed", n, len(freed))
		}
	})
}

func TestAHookHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended error
		obeys := func(ctx context.Context, _ *schema.Event) (schema.Result, error) {
			<-ctx.Done()
			ended = ctx.Err()
			return schema.Result{}, ctx.Err()
		}
		slow := hook("obeys")
		slow.Timeout = schema.Duration(2 * time.Second)
		w := newWorker(library{"obeys": obeys, "yes": allows}, config(slow, hook("yes")))
		start := time.Now()
		r := w.Run(t.Context(), batch(0, 1))
		wantKinds(t, r, "0:deadline 1:ok")
		if took := time.Since(start); took != 2*time.Second || r.Outcomes[0].Took.Std() != took || r.Outcomes[0].Error != "did not answer within its timeout of 2s" {
			t.Errorf("after %v: %+v", took, r.Outcomes[0])
		}
		synctest.Wait()
		if !errors.Is(ended, context.DeadlineExceeded) || w.Beat("p").InFlight != 0 {
			t.Errorf("the handler ended with %v, %d in flight", ended, w.Beat("p").InFlight)
		}
	})
}

func TestHooksThatCouldNotStartMissTheirDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int32
		waits := func(ctx context.Context, _ *schema.Event) (schema.Result, error) {
			ran.Add(1)
			<-ctx.Done()
			return schema.Result{}, ctx.Err()
		}
		w := newWorker(library{"waits": waits}, config(hook("waits"), hook("waits")))
		b := batch(0, 1)
		b.Left = time.Second
		wantKinds(t, w.Run(t.Context(), b), "0:deadline 1:deadline")
		if n := ran.Load(); n != 1 {
			t.Errorf("%d hooks ran", n)
		}
	})
}

func TestMaxConcurrentBoundsAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		bounded := hook("hangs")
		bounded.MaxConcurrent, bounded.Timeout = 1, schema.Duration(5*time.Second)
		w := newWorker(library{"hangs": hangs(end), "yes": allows}, config(bounded, hook("yes")))
		first := make(chan schema.BatchReply)
		go func() { first <- w.Run(t.Context(), batch(0)) }()
		synctest.Wait()
		start := time.Now()
		r := w.Run(t.Context(), batch(0, 1))
		wantKinds(t, r, "0:busy 1:ok")
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it was busy after %v; a call waits for its turn until its deadline", took)
		}
		wantKinds(t, <-first, "0:deadline")
		second := make(chan schema.BatchReply)
		go func() { second <- w.Run(t.Context(), batch(0)) }()
		synctest.Wait()
		close(end) // the first one hung, and now makes room for the waiting one
		wantKinds(t, <-second, "0:ok")
	})
}
