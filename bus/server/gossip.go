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

// Each server of a cluster has its own copy of the realm, so that any of them can be started alone. Each
// publishes a digest of its copy in the system account. A server with another digest requests the whole
// copy and merges it into its own (realm.Take).
const (
	realmSums = "hookfabric.realm.sum"
	realmOf   = "hookfabric.realm.of." // followed by the server's id
	// tellEvery is the interval of digests. A server that was cut off may accept revoked
	// credentials that much longer after it is back.
	tellEvery = time.Second
	// pullTime bounds a request for another server's realm.
	pullTime = 5 * time.Second
)

// A sum is a server's message with the digest of its realm.
type sum struct {
	Server string `json:"server"`
	Sum    string `json:"sum"`
}

// A gossip merges the realms of the servers of a cluster. A nil one does nothing, for a single server.
type gossip struct {
	dir, server string
	nc          *nats.Conn
	log         *slog.Logger
	news        chan struct{}          // signals a merged change
	mine        atomic.Pointer[string] // the digest of this server's realm
	// known is the realm of the last digest, published at told; only tell uses both.
	known *realm.Realm
	told  time.Time
	// taken are the last digests of other servers, each with this server's own at that time.
	// said is the last error. Only the goroutine that receives digests uses both.
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

// heard returns a channel that signals a merged change.
func (g *gossip) heard() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.news
}

// tell publishes the digest if it is new, or was published a while ago.
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

// give answers a request of another server for this server's realm.
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

// hear merges the realm of another server if its digest differs.
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
		default: // a signal is pending
		}
	}
}

// take requests another server's realm and merges it into the folder.
func (g *gossip) take(ctx context.Context, server string) (news bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	m, err := g.nc.RequestWithContext(ctx, realmOf+server, nil)
	if err != nil {
		return false, fmt.Errorf("asking for it: %w", err)
	}
	return realm.Take(ctx, g.dir, m.Data)
}
