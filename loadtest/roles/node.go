package roles

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// A NodeConfig is what a NATS server without a broker is to be started with.
type NodeConfig struct {
	Name string `json:"name"`
	// Dir is a directory of its own.
	Dir string `json:"dir"`
	// Listen and Route are the ports for clients and for the other servers of its
	// cluster; no Route: it is in none.
	Listen int `json:"listen"`
	Route  int `json:"route,omitzero"`
	// Routes are the others', and its own.
	Routes []int `json:"routes,omitzero"`
	// Sync is how often it syncs to disk; 0: at every write.
	Sync schema.Duration `json:"sync"`
}

// localhost is the only interface that a load test uses.
const localhost = "127.0.0.1"

// upIn is how long a server may take to come up.
const upIn = 30 * time.Second

// startNode runs a nats-server as people run it who have more than one.
func startNode(_ context.Context, c NodeConfig) (*proc.Role, error) {
	o := &server.Options{
		ServerName: c.Name, Host: localhost, Port: c.Listen, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: c.Dir, SyncAlways: c.Sync == 0, SyncInterval: c.Sync.Std(), MaxPayload: schema.MaxPayload,
	}
	if c.Route != 0 {
		o.Cluster = server.ClusterOpts{Name: "loadtest", Host: localhost, Port: c.Route}
	}
	for _, port := range c.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("%s:%d", localhost, port)})
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("the server %s: %w", c.Name, err)
	}
	s.Start()
	stop := func() error {
		s.Shutdown()
		s.WaitForShutdown()
		return nil
	}
	if !s.ReadyForConnections(upIn) {
		return nil, errors.Join(fmt.Errorf("the server %s took no connections within %v", c.Name, upIn), stop())
	}
	return &proc.Role{Facts: Address{URL: s.ClientURL()}, Do: Settle, Close: stop}, nil
}
