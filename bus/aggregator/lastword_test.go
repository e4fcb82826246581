package aggregator

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

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

func TestADenyWithALongReasonFitsASmallServer(t *testing.T) {
	nc := smallServer(t)
	a := &Aggregator{opt: Options{Events: nc, Logger: slog.New(slog.DiscardHandler)}}
	for _, d := range []schema.Decision{schema.Deny, schema.Stop, schema.Allow} {
		v := &schema.Verdict{Decision: d, Reason: strings.Repeat("x", 1<<20-100), Value: []byte(`"` + strings.Repeat("y", 1<<10) + `"`)}
		data, err := a.encode(new(bus.Envelope), v, schema.PreToolUse, a.mostSent())
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.Publish("x", data); err != nil || v.Decision != schema.Deny {
			t.Errorf("%s became %s: %v", d, v.Decision, err)
		}
	}
}

// TestWhatIsHandedOverFitsASmallServer checks that a delivery through a server with a small limit
// fits that limit.
func TestWhatIsHandedOverFitsASmallServer(t *testing.T) {
	a := &Aggregator{opt: Options{Events: smallServer(t), Logger: slog.New(slog.DiscardHandler)}}
	d := &delivery{agg: a, room: a.room(0)}
	all := []handed{{Handout: schema.Handout{Injections: []schema.Injection{{Content: strings.Repeat("\x1b", 1<<20)}, {Content: "short"}}}}}
	d.shorten(all)
	v := &schema.Verdict{Injections: all[0].Injections}
	if _, err := a.encode(new(bus.Envelope), v, schema.PostToolUse, a.mostSent()); err != nil || len(v.Injections) != 2 || v.Injections[1].Content != "short" {
		t.Errorf("%q, %v", v.HookErrors, err)
	}
	if d.room.content < minHanded || d.room.content > d.room.whole || d.room.whole >= 1<<20 {
		t.Errorf("the room is %+v", d.room)
	}
}

// smallServer returns a connection to a server that accepts messages up to 1 MiB.
func smallServer(t *testing.T) *nats.Conn {
	t.Helper()
	s, err := server.NewServer(&server.Options{DontListen: true, MaxPayload: 1 << 20, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
