package client_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/schema"
)

// A client whose server is cut off goes to another one. If no aggregator listens, the
// call that detects it is answered; if one listens without answering, the next call is.
func TestAClientLeavesAServerThatIsCutOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		silent bool
		calls  int
	}{
		"no aggregator listens there":               {false, 1},
		"an aggregator listens and does not answer": {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cut, other := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"}), bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
			wire := bustest.StartWire(t, strings.TrimPrefix(other.ClientURL(), "nats://"))
			wire.Cut() // the client connects to the server that will be cut off
			cl, err := client.Connect(t.Context(), client.Options{URL: cut.ClientURL() + ",nats://" + wire.Addr()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cl.Close)
			wire.Resume()
			answers(t, other, func(m *nats.Msg) {
				data, err := schema.Marshal(&schema.Verdict{Decision: schema.Deny, Reason: "the other one"})
				if err == nil {
					err = m.Respond(data)
				}
				if err != nil {
					t.Error(err)
				}
			})
			if c.silent {
				answers(t, cut, func(*nats.Msg) {})
			}
			var v *schema.Verdict
			for range c.calls {
				ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
				v, err = cl.Ask(ctx, event())
				stop()
			}
			if err != nil || v.Reason != "the other one" {
				t.Errorf("after %d calls: %+v, %v", c.calls, v, err)
			}
		})
	}
}

// A client that knows no other server keeps its connection, and loses no message.
func TestAClientDoesNotLeaveItsOnlyServer(t *testing.T) {
	t.Parallel()
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	answers(t, s, func(*nats.Msg) {})
	cl, err := client.Connect(t.Context(), client.Options{URL: s.ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	before, err := s.Connect(t.Context(), bus.Options{Name: "counter"})
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	first, err := before.GetClientID()
	if _, askErr := cl.Ask(ctx, event()); err != nil || askErr == nil {
		t.Fatalf("%v, %v", err, askErr)
	}
	after, err := s.Connect(t.Context(), bus.Options{Name: "counter"})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if next, err := after.GetClientID(); err != nil || next != first+1 {
		t.Errorf("the client connected again: connection %d came after %d, %v", next, first, err)
	}
}

// answers answers every event that a server receives with a function.
func answers(t *testing.T, s *server.Server, how func(*nats.Msg)) {
	t.Helper()
	nc := bustest.Connect(t, s, "aggregator")
	for _, subject := range []string{bus.EventsWildcard, bus.EventsWildcard + bus.AgainSuffix} {
		if _, err := nc.Subscribe(subject, how); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}
