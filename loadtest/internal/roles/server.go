package roles

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// A NodeConfig configures a NATS server without a broker.
type NodeConfig struct {
	Name string `json:"name"`
	// Dir is the server's own directory.
	Dir string `json:"dir"`
	// Listen and Route are the addresses for clients and for the other servers of its
	// cluster; without Route it is not in a cluster.
	Listen string `json:"listen"`
	Route  string `json:"route,omitzero"`
	// Routes are the addresses of all servers of the cluster.
	Routes []string `json:"routes,omitzero"`
	// Sync is how often it syncs to disk; 0: at every write.
	Sync schema.Duration `json:"sync"`
}

// upIn limits how long a server may take to start.
const upIn = 30 * time.Second

// startNode runs a nats-server as operators of clusters do.
func startNode(_ context.Context, c NodeConfig) (*proc.Role, error) {
	o := &server.Options{
		ServerName: c.Name, JetStream: true, StoreDir: c.Dir, SyncAlways: c.Sync == 0, SyncInterval: c.Sync.Std(),
	}
	err := place(c.Listen, &o.Host, &o.Port)
	if c.Route != "" {
		o.Cluster.Name = "loadtest"
		err = errors.Join(err, place(c.Route, &o.Cluster.Host, &o.Cluster.Port))
	}
	if err != nil {
		return nil, err
	}
	for _, r := range c.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: r})
	}
	s, err := serverOf(o)
	if err != nil {
		return nil, err
	}
	return &proc.Role{Facts: Address{URL: s.ClientURL()}, Do: Settle, Close: stopping(s)}, nil
}

// serverOf starts a server, and waits until it accepts connections.
func serverOf(o *server.Options) (*server.Server, error) {
	o.NoSigs, o.NoLog, o.MaxPayload = true, true, schema.MaxPayload
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("the server %s: %w", o.ServerName, err)
	}
	s.Start()
	if !s.ReadyForConnections(upIn) {
		return nil, errors.Join(fmt.Errorf("the server %s took no connections within %v", o.ServerName, upIn), stopping(s)())
	}
	return s, nil
}

func stopping(s *server.Server) func() error {
	return func() error {
		s.Shutdown()
		s.WaitForShutdown()
		return nil
	}
}

// place splits an address for the server's options.
func place(address string, host *string, port *int) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("the address of a server: %w", err)
	}
	*host, *port = at.Addr().String(), int(at.Port())
	return nil
}

// The responder on these subjects answers from within the server's process: at once, or
// with the answer of the raw responder in another process.
const (
	insideSubject = "loadtest.inside"
	relaySubject  = "loadtest.relay"
)

// startInside runs a server with a responder to bare requests in its process. A request
// takes the same way as a call to an aggregator, and from there to a worker, but over NATS
// only. The responder neither decodes events nor encodes answers.
func startInside(_ context.Context, _ struct{}) (*proc.Role, error) {
	ready, err := schema.Marshal(folded(RawResponder, allowed(1)))
	if err != nil {
		return nil, fmt.Errorf("encoding the answer: %w", err)
	}
	s, err := serverOf(&server.Options{ServerName: Inside, Host: "127.0.0.1", Port: server.RANDOM_PORT})
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.Name("loadtest "+Inside))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connecting within the process: %w", err), stopping(s)())
	}
	_, atOnce := nc.Subscribe(insideSubject, func(m *nats.Msg) { _ = m.Respond(ready) })
	_, relayed := nc.Subscribe(relaySubject, func(m *nats.Msg) { go relay(nc, m) })
	end := func() error {
		nc.Close()
		return stopping(s)()
	}
	if err := errors.Join(atOnce, relayed, nc.FlushTimeout(upIn)); err != nil {
		return nil, errors.Join(fmt.Errorf("listening within the server's process: %w", err), end())
	}
	return &proc.Role{Facts: Address{URL: s.ClientURL()}, Do: Settle, Close: end}, nil
}

// relay answers m with the raw responder's answer. If there is no answer, the requester's
// deadline reports it.
func relay(nc *nats.Conn, m *nats.Msg) {
	if said, err := nc.Request(rawSubject, m.Data, flushIn); err == nil {
		_ = m.Respond(said.Data)
	}
}
