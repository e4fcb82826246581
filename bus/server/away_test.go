package server_test

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
)

// Connections in this process are neither asked to leave nor closed.
func TestClientsAreAskedToLeaveAndThenDropped(t *testing.T) {
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	heard, dropped := make(chan *nats.Conn, 10), make(chan struct{})
	leaving := func(nc *nats.Conn) { heard <- nc }
	polite, err := bus.Connect(t.Context(), bus.Options{URL: s.ClientURL(), OnLeaving: leaving})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(polite.Close)
	deaf, err := nats.Connect(s.ClientURL(), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(dropped) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(deaf.Close)
	inside, err := s.Connect(t.Context(), bus.Options{OnLeaving: leaving})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inside.Close)
	for _, nc := range []*nats.Conn{polite, deaf, inside} {
		if err := nc.FlushWithContext(within(t)); err != nil { // it is known whole
			t.Fatal(err)
		}
	}
	told, err := s.AskToLeave()
	if err != nil || len(told) != 2 {
		t.Fatalf("%d were asked, %v", len(told), err)
	}
	if who := <-heard; who != polite {
		t.Error("another client was asked")
	}
	polite.Close()
	bustest.Eventually(t, "it has left", func() bool { left, _ := s.AskToLeave(); return len(left) == 1 })
	if n := s.Drop(told); n != 1 {
		t.Errorf("%d connections were closed", n)
	}
	<-dropped
	if err := inside.FlushWithContext(within(t)); err != nil || len(heard) > 0 {
		t.Errorf("what is in this process was sent away: %v, %d", err, len(heard))
	}
}
