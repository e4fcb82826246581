package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
)

const disconnects = "$SYS.ACCOUNT.*.DISCONNECT"

// clientLeft is the part of the server's event that tells who left.
type clientLeft struct {
	Client struct {
		Name string `json:"name"`
		Kind string `json:"kind"`
	} `json:"client"`
	Reason string `json:"reason"`
}

// serverStops is the reason of clients that are sent away by a server that stops:
// they live, and go to another one.
const serverStops = "Server Shutdown"

// WatchDisconnects calls gone with the name of every client that a server of the
// cluster loses while it goes on itself, a few milliseconds after it did, until ctx ends. It returns when it
// watches. nc must be a connection to the system account: see
// [Server.ConnectSystem]. gone is called from one goroutine.
func WatchDisconnects(ctx context.Context, nc *nats.Conn, gone func(clientName string)) error {
	sub, err := nc.Subscribe(disconnects, func(m *nats.Msg) {
		if name := whoLeft(m.Data); name != "" {
			gone(name)
		}
	})
	if err != nil {
		return fmt.Errorf("watching for lost clients: %w", err)
	}
	fctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := nc.FlushWithContext(fctx); err != nil {
		_ = sub.Unsubscribe()
		return fmt.Errorf("watching for lost clients: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	return nil
}

// whoLeft returns the name of the client that an event tells of; empty if it
// had none, was no client, or the event can not be read.
func whoLeft(data []byte) string {
	var e clientLeft
	if err := schema.Unmarshal(data, &e); err != nil || e.Client.Kind != "Client" || e.Reason == serverStops {
		return ""
	}
	return e.Client.Name
}
