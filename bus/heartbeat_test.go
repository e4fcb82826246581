package bus_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
)

// A client that knows another server leaves one that hangs with its connection open. A client
// with one server stays, because it gains nothing by leaving.
func TestAClientLeavesAHangingServerForAnother(t *testing.T) {
	wires := map[string]*bustest.Wire{}
	var urls []string
	for range 2 {
		s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
		w := bustest.StartWire(t, strings.TrimPrefix(s.ClientURL(), "nats://"))
		wires[w.Addr()], urls = w, append(urls, "nats://"+w.Addr())
	}
	var log bytes.Buffer
	states := make(chan bool, 10)
	connect := func(o bus.Options) *nats.Conn {
		nc, err := bus.Connect(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	next := func(want bool) {
		t.Helper()
		select {
		case got := <-states:
			if got != want {
				t.Fatalf("connected: %t", got)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the client stays with a hanging server")
		}
	}
	// The clients that stay check a moment before the one that leaves.
	stay := []*nats.Conn{connect(bus.Options{URL: urls[0]}), connect(bus.Options{URL: urls[1]})}
	goes := connect(bus.Options{URL: strings.Join(urls, ","), OnState: func(c bool) { states <- c }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	next(true)
	left := goes.ConnectedAddr()
	wires[left].Hold()
	held := time.Now()
	next(false)
	if after := time.Since(held); after < 2*time.Second {
		t.Errorf("the client left after only %v", after)
	}
	next(true)
	if goes.ConnectedAddr() == left {
		t.Errorf("the client is connected to %s again", left)
	}
	flush(t, goes)
	if !strings.Contains(log.String(), "did not answer for") {
		t.Errorf("the log does not say why:\n%s", log.String())
	}
	wires[left].Resume()
	for _, nc := range stay {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := nc.FlushWithContext(ctx); err != nil || nc.Stats().Reconnects > 0 {
			t.Errorf("a client with one server did not stay: %v, %d reconnects", err, nc.Stats().Reconnects)
		}
		cancel()
	}
}
