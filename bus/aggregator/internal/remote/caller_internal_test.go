package remote

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// calling returns a caller, and the batches that it sends to the pool "p".
func calling(t *testing.T, late func(*schema.Batch)) (*caller, chan *nats.Msg) {
	t.Helper()
	s := bustest.Start(t)
	c, err := newCaller(bustest.Connect(t, s, "work"), late)
	if err != nil {
		t.Fatal(err)
	}
	batches, nc := make(chan *nats.Msg, 100), bustest.Connect(t, s, "worker")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = nc.ChanSubscribe("hook.v1.run.p", batches)
	if err := errors.Join(err, nc.FlushWithContext(ctx)); err != nil {
		t.Fatal(err)
	}
	return c, batches
}

// call sends a batch, and returns the worker that answered.
func call(ctx context.Context, c *caller) (string, error) {
	r, err := c.Call(ctx, "p", "", &schema.Batch{Routing: schema.Routing{Event: schema.PreToolUse, Agent: "a"}, Batch: "b", Hooks: []int{0}, Left: time.Minute})
	return r.Worker, err
}

func TestALateAnswerIsForNoOtherCall(t *testing.T) {
	given := 0
	c, batches := calling(t, func(*schema.Batch) { given++ })
	var old []*nats.Msg
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { _, err := call(ctx, c); done <- err }()
		old = append(old, <-batches)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("a call that was given up returned %v", err)
		}
	}
	for range 10 {
		answered := make(chan string)
		go func() { who, _ := call(t.Context(), c); answered <- who }()
		m := <-batches
		for _, o := range old {
			if err := o.Respond([]byte(`{"worker":"late"}`)); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Respond([]byte(`{"worker":"right"}`)); err != nil {
			t.Fatal(err)
		}
		if who := <-answered; who != "right" {
			t.Fatalf("a call got the answer of %q", who)
		}
	}
	if given != len(old) {
		t.Errorf("%d answers of %d were counted as late", given, len(old))
	}
}

func TestAnAnswerThatIsHereCountsBeforeItsWorkersDeath(t *testing.T) {
	nc := bustest.Connect(t, bustest.Start(t), "work")
	c, err := newCaller(nc, func(*schema.Batch) {})
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan context.CancelCauseFunc, 1)
	worker, err := nc.Subscribe("hook.v1.run.p.w", func(m *nats.Msg) {
		c.replies <- &nats.Msg{Subject: m.Reply, Data: []byte(`{"worker":"w","outcomes":[{"hook":0,"result":{"decision":"deny"}}]}`)}
		(<-ends)(dispatch.ErrGone)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = worker.Unsubscribe() }()
	for range 200 {
		ctx, cancel := context.WithCancelCause(t.Context())
		ends <- cancel
		reply, err := c.Call(ctx, "p", "w", &schema.Batch{Version: 1, Hooks: []int{0}, Left: time.Second})
		if err != nil || reply.Outcomes[0].Result.Decision != schema.Deny {
			t.Fatalf("%+v, %v", reply, err)
		}
	}
}
