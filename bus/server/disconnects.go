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

// disconnects returns the subject of events about clients that left an account.
func disconnects(account string) string { return "$SYS.ACCOUNT." + account + ".DISCONNECT" }

// clientLeft is the part of the server's event that identifies the client.
type clientLeft struct {
	Client struct {
		Name string   `json:"name"`
		Kind string   `json:"kind"`
		Tags []string `json:"tags"`
	} `json:"client"`
	Reason string `json:"reason"`
}

// serverStops is the reason for clients of a server that stops. They are alive and move to another one.
const serverStops = "Server Shutdown"

// Left is a client that disconnected.
type Left struct {
	// Name is the name of its connection.
	Name string
	// Pools are the pools of its credentials; none: all pools, or clients need no credentials.
	Pools []string
}

// WatchDisconnects calls gone for each client that a running server of the cluster loses, within a few
// milliseconds, until ctx ends. It returns when it watches. nc must be a connection to the system
// account: see [Server.ConnectSystem]. gone is called from one goroutine.
//
// Any client may choose any connection name. With credentials, only clients of the server's tenant with
// credentials of a worker or a broker are reported, so that an agent with the name of a worker cannot
// make the worker look dead. The caller must apply a name only to [Left.Pools], so that a worker cannot
// do that to one of another pool.
func (s *Server) WatchDisconnects(ctx context.Context, nc *nats.Conn, gone func(Left)) error {
	subject := disconnects("*")
	if s.auth != nil {
		subject = disconnects(s.auth.tenant.Key)
	}
	err := watch(ctx, nc, subject, func(m *nats.Msg) {
		if left, ok := whoLeft(m.Data, s.auth != nil); ok {
			gone(left)
		}
	})
	if err != nil {
		return fmt.Errorf("watching for lost clients: %w", err)
	}
	return nil
}

// watch subscribes until ctx ends, and returns when the server knows the subscription.
func watch(ctx context.Context, nc *nats.Conn, subject string, handle nats.MsgHandler) error {
	sub, err := nc.Subscribe(subject, handle)
	if err != nil {
		return err
	}
	flushing, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := nc.FlushWithContext(flushing); err != nil {
		_ = sub.Unsubscribe()
		return err
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	return nil
}

// whoLeft returns the client of an event, and whether to report it. It is false for clients without a
// name, other kinds of connections, events that cannot be decoded, and with credentials for clients
// that are neither workers nor brokers.
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

// speaksFor returns the pools for whose workers a disconnect of a client with these tags counts, and
// whether there are any; none named: all pools.
//
// Old credentials of workers do not name their pools, so they count for none. The death of such a worker
// is noticed by its missing heartbeats, or by a request without an answer.
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
