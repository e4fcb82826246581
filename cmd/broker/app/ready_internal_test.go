package app

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus"
)

// A broker that cannot receive freezes, or requests of agents, is not ready.
func TestABrokerIsReadyOnlyWithAllItsConnections(t *testing.T) {
	b, err := New(t.Context(), Options{Data: t.TempDir(), Listen: "127.0.0.1:0", Sync: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer func() { must(t, b.Close(t.Context())) }()
	must(t, b.Ready())
	closed, err := b.Connect(t.Context(), bus.Options{Name: "closed"})
	must(t, err)
	closed.Close()
	for _, c := range b.connections() {
		open := *c.at
		*c.at = closed
		if err := b.Ready(); err == nil || !strings.Contains(err.Error(), "the connection for "+c.name) {
			t.Errorf("without %s: %v", c.name, err)
		}
		*c.at = open
	}
	must(t, b.Ready())
}
