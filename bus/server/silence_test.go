package server_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
)

// While a server has a connection to another it hands it requests: one that says
// nothing any more is left soon, and not when it was only slow for a moment.
func TestAServerLeavesAnotherThatIsSilent(t *testing.T) {
	t.Parallel()
	routes := bustest.FreeAddresses(t, 2)
	wire := bustest.StartWire(t, routes[1])
	a, b := member(t, routes, 0), member(t, routes, 1)
	a.Cluster.Routes = []string{wire.Addr()}
	b.Cluster.Routes = routes[1:] // it is found by the other one
	servers := startAll(t, []server.Options{a, b})
	there := bustest.Connect(t, servers[1], "there")
	if _, err := there.Subscribe("there", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	bustest.Eventually(t, "the subscription is known", func() bool { return servers[0].Interest("there") })
	wire.Hold()
	defer wire.Resume()
	began := time.Now()
	bustest.Eventually(t, "it is left", func() bool { return !servers[0].Interest("there") })
	if d := time.Since(began); d < 2*time.Second || d > 10*time.Second {
		t.Errorf("it was left after %v", d)
	}
}
