package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/schema"
)

// The servers of a cluster have a folder each that says who may use the fabric, so that
// any of them can be started alone. Each tells the others in the system account, where
// nobody else is, by a sum what it knows; whoever knows something else asks it for all,
// and puts that together with his own (realm.Take).
const (
	realmSums = "hookfabric.realm.sum"
	realmOf   = "hookfabric.realm.of." // and the server's id
	// tellEvery is how often each server tells its sum: one that was cut off may let
	// somebody in who was revoked for that much longer after it is back.
	tellEvery = time.Second
	// pullTime is how long another server's realm may take to come.
	pullTime = 5 * time.Second
)

// A sum is what a server tells the others of its realm.
type sum struct {
	Server string `json:"server"`
	Sum    string `json:"sum"`
}

// A gossip puts together what the servers of a cluster know of who may use the fabric.
// A nil one does nothing: the server is on its own.
type gossip struct {
	dir, server string
	nc          *nats.Conn
	log         *slog.Logger
	news        chan struct{}          // something was taken
	mine        atomic.Pointer[string] // the sum of what this server goes by
	// known is whose sum was told last, and told when: of tell alone.
	known *realm.Realm
	told  time.Time
	// taken are the last sums of the others that were looked at, each with this server's
	// own then, said is what went wrong last: of the goroutine that hears sums alone.
	taken map[string][2]string
	said  string
}

func startGossip(ctx context.Context, s *Server) (*gossip, error) {
	nc, err := s.ConnectSystem(ctx, bus.Options{Name: "broker-realm", NoEcho: true, Logger: s.auth.log})
	if err != nil {
		return nil, err
	}
	g := &gossip{dir: s.auth.dir, server: s.nats.ID(), nc: nc, log: s.auth.log, news: make(chan struct{}, 1), taken: map[string][2]string{}}
	g.mine.Store(new(s.auth.known.Sum()))
	_, err = nc.Subscribe(realmOf+g.server, g.give)
	if err == nil {
		_, err = nc.Subscribe(realmSums, func(m *nats.Msg) { g.hear(ctx, m) })
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("subscribing to the realms of other servers: %w", err)
	}
	return g, nil
}

func (g *gossip) end() {
	if g != nil {
		g.nc.Close()
	}
}

// heard is when something was taken from another server.
func (g *gossip) heard() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.news
}

// tell tells the others what this server goes by, if that is new or was told a while ago.
func (g *gossip) tell(known *realm.Realm) {
	if g == nil {
		return
	}
	if known == g.known && time.Since(g.told) < tellEvery {
		return
	}
	if known != g.known {
		g.mine.Store(new(known.Sum()))
	}
	g.known, g.told = known, time.Now()
	data, err := schema.Marshal(sum{g.server, *g.mine.Load()})
	if err == nil {
		err = g.nc.Publish(realmSums, data)
	}
	if err != nil {
		g.log.Debug("cannot send the realm to the other servers", "error", err)
	}
}

// give answers another server that asks for all that is known here.
func (g *gossip) give(m *nats.Msg) {
	r, err := realm.Read(g.dir)
	var data []byte
	if err == nil {
		data, err = r.Public()
	}
	if most := g.nc.MaxPayload(); err == nil && int64(len(data)) > most {
		err = fmt.Errorf("the realm has %d bytes, and servers exchange at most %d; copy the folder %s to the others", len(data), most, g.dir)
	}
	if err == nil {
		err = m.Respond(data)
	}
	if err != nil {
		g.log.Error("cannot send the realm to another server", "error", err)
	}
}

// hear takes over what another server knows, if it is something else.
func (g *gossip) hear(ctx context.Context, m *nats.Msg) {
	var s sum
	mine := *g.mine.Load()
	if err := schema.Unmarshal(m.Data, &s); err != nil || s.Sum == mine || g.taken[s.Server] == [2]string{s.Sum, mine} {
		return
	}
	news, err := g.take(ctx, s.Server)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrNoResponders): // this server stops, or that one
	case err != nil && err.Error() != g.said:
		g.log.Error("the realm of another server of the cluster differs and cannot be merged; this server keeps its own", "server", s.Server, "error", err)
	}
	g.said = ""
	if err != nil {
		g.said = err.Error()
		return
	}
	g.taken[s.Server] = [2]string{s.Sum, mine}
	if news {
		g.log.Info("merged the realm of another server of the cluster", "server", s.Server)
		select {
		case g.news <- struct{}{}:
		default: // it is going to be looked at
		}
	}
}

// take asks another server for all that it knows, and adds that to the folder.
func (g *gossip) take(ctx context.Context, server string) (news bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	m, err := g.nc.RequestWithContext(ctx, realmOf+server, nil)
	if err != nil {
		return false, fmt.Errorf("asking for it: %w", err)
	}
	return realm.Take(ctx, g.dir, m.Data)
}
