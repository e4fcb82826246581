package roles

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/loadtest/proc"
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
	host, port, err := place(c.Listen)
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		ServerName: c.Name, Host: host, Port: port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: c.Dir, SyncAlways: c.Sync == 0, SyncInterval: c.Sync.Std(), MaxPayload: schema.MaxPayload,
	}
	if c.Route != "" {
		o.Cluster.Name = "loadtest"
		if o.Cluster.Host, o.Cluster.Port, err = place(c.Route); err != nil {
			return nil, err
		}
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
func place(address string) (host string, port int, err error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("where a server is to listen: %w", err)
	}
	return at.Addr().String(), int(at.Port()), nil
}
