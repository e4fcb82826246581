package workers_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// closing is a runner whose handlers wait for the test, and report when they are closed.
type closing struct {
	loads   atomic.Int64
	entered chan struct{}
	answer  chan struct{}
	closed  chan uint64
}

func newClosing() *closing {
	return &closing{entered: make(chan struct{}, 8), answer: make(chan struct{}), closed: make(chan uint64, 8)}
}

func (c *closing) Load(schema.Hook, workers.Site) (workers.Handler, error) {
	return &closingHandler{closing: c, number: uint64(c.loads.Add(1))}, nil
}

func (c *closing) Close() error { return nil }

func (c *closing) worker(change ...func(*workers.Options)) *workers.Worker {
	opt := workers.Options{Name: "w", Pools: []string{"p"}, Runners: map[schema.Kind]workers.Runner{schema.Builtin: c}}
	for _, c := range change {
		c(&opt)
	}
	return workers.New(opt)
}

type closingHandler struct {
	*closing
	number uint64
}

func (h *closingHandler) Handle(context.Context, *schema.Event) (schema.Result, error) {
	h.entered <- struct{}{}
	<-h.answer
	return schema.Allowed(), nil
}

func (h *closingHandler) Close() error {
	h.closed <- h.number
	return nil
}

func TestHandlersOfADroppedVersionCloseAfterTheirLastCall(t *testing.T) {
	c := newClosing()
	w := c.worker(lingering(-1))
	w.Load(guards(1, "f", "a"))
	done := make(chan schema.BatchReply)
	go func() { done <- w.Run(t.Context(), batchOf(1, "f", 0)) }()
	<-c.entered
	w.Prepare(guards(2, "f", "a"))
	w.Activate(2, []uint64{2})
	select {
	case n := <-c.closed:
		t.Fatalf("handler %d was closed during a call", n)
	default:
	}
	if r := w.Run(t.Context(), batchOf(1, "f", 0)); r.Status != schema.StatusStale {
		t.Errorf("a batch of the dropped version: %+v", r)
	}
	close(c.answer)
	if r := <-done; r.Status != schema.StatusOK || len(r.Outcomes) != 1 {
		t.Errorf("the call in progress: %+v", r)
	}
	if n := <-c.closed; n != 1 {
		t.Errorf("handler %d was closed", n)
	}
}

func TestAVersionIsPreparedOnceAndReportedWhenActive(t *testing.T) {
	c := newClosing()
	w := c.worker()
	w.Load(guards(1, "f", "a"))
	for range 2 {
		if errs := w.Prepare(guards(2, "f", "a", "b")); errs != nil {
			t.Error(errs)
		}
	}
	if n := c.loads.Load(); n != 3 {
		t.Errorf("%d handlers were loaded for versions of 1 and 2 hooks", n)
	}
	if b := w.Beat("p"); w.Version() != 1 || !cmp.Equal(b.Versions, []uint64{1, 2}) {
		t.Errorf("prepared only, version %d is active and the beat has %v", w.Version(), b.Versions)
	}
	w.Activate(1, []uint64{1}) // the candidate was withdrawn
	if b := w.Beat("p"); w.Version() != 1 || !cmp.Equal(b.Versions, []uint64{1}) {
		t.Errorf("after it was withdrawn, version %d is active and the beat has %v", w.Version(), b.Versions)
	}
	if a, b := <-c.closed, <-c.closed; a+b != 5 {
		t.Errorf("handlers %d and %d were closed", a, b)
	}
}
