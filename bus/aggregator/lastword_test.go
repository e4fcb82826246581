package aggregator

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

func TestADenyWithALongReasonFitsASmallServer(t *testing.T) {
	nc := smallServer(t)
	r := newReplies(nc, "", slog.New(slog.DiscardHandler))
	for _, d := range []schema.Decision{schema.Deny, schema.Stop, schema.Allow} {
		v := &schema.Verdict{Decision: d, Reason: strings.Repeat("x", 1<<20-100), Value: []byte(`"` + strings.Repeat("y", 1<<10) + `"`)}
		data, err := encode(new(bus.Envelope), v, schema.PreToolUse, r.maxVerdict())
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.Publish("x", data); err != nil || v.Decision != schema.Deny {
			t.Errorf("%s became %s: %v", d, v.Decision, err)
		}
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
