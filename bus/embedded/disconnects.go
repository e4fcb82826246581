package embedded

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus/access"
	"github.com/hookfabric/hookfabric/bus/access/realm"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
)

// disconnects is where servers tell of clients that left an account.
func disconnects(account string) string { return "$SYS.ACCOUNT." + account + ".DISCONNECT" }

// clientLeft is the part of the server's event that tells who left.
type clientLeft struct {
	Client struct {
		Name string   `json:"name"`
		Kind string   `json:"kind"`
		Tags []string `json:"tags"`
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
//
// Anybody may give a connection any name. Where everybody has to say who they are,
// only clients of the server's tenant are told of, and only those whose
// credentials are a worker's or a broker's: an agent's that goes by a worker's name
// takes nobody down.
func (s *Server) WatchDisconnects(ctx context.Context, nc *nats.Conn, gone func(clientName string)) error {
	subject, among := disconnects("*"), []string(nil)
	if s.auth != nil {
		subject = disconnects(s.auth.tenant.Key)
		among = []string{realm.RoleTag + string(access.Worker), realm.RoleTag + string(access.Broker)}
	}
	sub, err := nc.Subscribe(subject, func(m *nats.Msg) {
		if name := whoLeft(m.Data, among); name != "" {
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
// had none, was no client, has no tag among those, or the event can not be read. No
// tags: any client.
func whoLeft(data []byte, among []string) string {
	var e clientLeft
	if err := schema.Unmarshal(data, &e); err != nil || e.Client.Kind != "Client" || e.Reason == serverStops {
		return ""
	}
	if among != nil && !slices.ContainsFunc(e.Client.Tags, func(tag string) bool { return slices.Contains(among, tag) }) {
		return ""
	}
	return e.Client.Name
}
