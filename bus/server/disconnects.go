package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
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

// Left is a client that a server lost.
type Left struct {
	// Name is what it called itself.
	Name string
	// Pools are those that its credentials are for; none: all of them, or nobody has
	// to say who they are.
	Pools []string
}

// WatchDisconnects calls gone with every client that a server of the
// cluster loses while it goes on itself, a few milliseconds after it did, until ctx ends. It returns when it
// watches. nc must be a connection to the system account: see
// [Server.ConnectSystem]. gone is called from one goroutine.
//
// Anybody may give a connection any name. Where everybody has to say who they are,
// only clients of the server's tenant are told of, and only those whose
// credentials are a worker's or a broker's: an agent's that goes by a worker's name
// takes nobody down. Nor does a worker's take down any of another pool: whoever acts on
// the name has to keep to [Left.Pools].
func (s *Server) WatchDisconnects(ctx context.Context, nc *nats.Conn, gone func(Left)) error {
	subject := disconnects("*")
	if s.auth != nil {
		subject = disconnects(s.auth.tenant.Key)
	}
	sub, err := nc.Subscribe(subject, func(m *nats.Msg) {
		if left, ok := whoLeft(m.Data, s.auth != nil); ok {
			gone(left)
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

// whoLeft returns the client that an event tells of, and whether it is to be told of:
// not if it had no name, was no client, the event cannot be read, or, where everybody
// has to say who they are, it had no say about any worker.
func whoLeft(data []byte, asked bool) (left Left, ok bool) {
	var e clientLeft
	if err := schema.Unmarshal(data, &e); err != nil || e.Client.Kind != "Client" || e.Client.Name == "" || e.Reason == serverStops {
		return Left{}, false
	}
	left.Name, ok = e.Client.Name, true
	if asked {
		left.Pools, ok = speaksFor(e.Client.Tags)
	}
	return left, ok
}

// speaksFor returns the pools of whose workers a client with these tags may tell by
// leaving, and whether there are any; none named: all pools.
//
// A worker's credentials from before claims named the pools may tell of none: which they
// are for is not known. That such a worker is dead is noticed by its beats that
// fail to come, or when it is asked.
func speaksFor(tags []string) (pools []string, any bool) {
	if slices.Contains(tags, realm.RoleTag+string(access.Broker)) {
		return nil, true
	}
	if !slices.Contains(tags, realm.RoleTag+string(access.Worker)) {
		return nil, false
	}
	pools, all := realm.PoolsOf(tags)
	return pools, all || len(pools) > 0
}
