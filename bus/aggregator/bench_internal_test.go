package aggregator

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// BenchmarkNothing is the way of an event that no hook is asked about, from its
// message to its answer. It is the price of every call of an agent.
func BenchmarkNothing(b *testing.B) {
	s := bustest.Start(b)
	a, err := Start(Options{
		Events: bustest.Connect(b, s, "events"), Work: bustest.Connect(b, s, "work"), Logger: slog.New(slog.DiscardHandler),
		Interest: func(string) bool { return false },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = a.Drain(context.Background()) })
	if err := a.Activate(schema.Config{Version: 1}); err != nil {
		b.Fatal(err)
	}
	subject, err := bus.EventSubject("a", schema.PostToolUse)
	if err != nil {
		b.Fatal(err)
	}
	r := schema.Routing{Event: schema.PostToolUse, Agent: "a", Session: "s", Tool: "Bash", ID: "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"}
	m := bus.EventMsg(subject, r, 1, time.Minute, nil, []byte(`{"tool_name":"Bash"}`))
	m.Reply = "nobody"
	b.ReportAllocs()
	for b.Loop() {
		a.take(m)
	}
}
