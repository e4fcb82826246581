package aggregator

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/builtin"
	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
)

// BenchmarkNothing measures an event without a worker to ask, from its message to its answer: the
// cost of every call of an agent. The stores, which have nothing of this agent, may add only
// lookups.
func BenchmarkNothing(b *testing.B) {
	s := bustest.Start(b)
	b.Run("alone", func(b *testing.B) { benchmarkNothing(b, s, stores.Memory{}) })
	b.Run("with a memory", func(b *testing.B) { benchmarkNothing(b, s, opened(b, s)) })
}

// opened returns stores with much state of other agents.
func opened(b *testing.B, s *server.Server) stores.Memory {
	js, err := jetstream.New(bustest.Connect(b, s, "state"))
	if err != nil {
		b.Fatal(err)
	}
	q, err := queue.Open(b.Context(), js, queue.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r, err := rounds.Open(b.Context(), js, rounds.Options{})
	if err != nil {
		b.Fatal(err)
	}
	who, err := sessions.Open(b.Context(), js, sessions.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = q.Close(context.Background())
		_ = r.Close(context.Background())
		_ = who.Close(context.Background())
	})
	for i := range 1000 {
		it := &schema.Item{Scope: schema.Scope{Agent: "another"}, Producer: "p", Name: strconv.Itoa(i), Source: "ci", Strategy: schema.ToolResult, Content: "x"}
		if _, err := q.Enqueue(b.Context(), it); err != nil {
			b.Fatal(err)
		}
	}
	return stores.Memory{Queue: q, Rounds: r, Sessions: who}
}

func benchmarkNothing(b *testing.B, s *server.Server, m stores.Memory) {
	a, err := Start(Options{
		Events: bustest.Connect(b, s, "events"), Work: bustest.Connect(b, s, "work"), Logger: slog.New(slog.DiscardHandler),
		Interest: func(string) bool { return false }, Memory: m,
		Stages: builtin.Stage,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = a.Drain(context.Background()) })
	cfg := schema.Config{Version: 1}
	for _, handler := range schema.DeliveryStages() {
		cfg.Hooks = append(cfg.Hooks, schema.Hook{Name: handler, Event: schema.PostToolUse, Type: schema.Builtin, Handler: handler})
	}
	if err := a.Activate(cfg); err != nil {
		b.Fatal(err)
	}
	subject, err := bus.EventSubject("a", schema.PostToolUse)
	if err != nil {
		b.Fatal(err)
	}
	r := schema.Routing{Event: schema.PostToolUse, Agent: "a", Session: "s", Tool: "Bash", ID: "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"}
	msg := bus.EventMsg(subject, r, 1, time.Minute, nil, []byte(`{"tool_name":"Bash"}`))
	msg.Reply = "_INBOX.unused"
	b.ReportAllocs()
	for b.Loop() {
		e := &intake.Arrival{Msg: msg, At: time.Now()}
		if a.judging.handle(e); !e.Judged {
			b.Fatal("it was not judged")
		}
	}
}
