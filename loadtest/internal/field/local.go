package field

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
)

// openLocal starts the server, then the brokers, then the workers.
func (f *Field) openLocal(ctx context.Context) error {
	f.hooks = filepath.Join(f.config.Dir, "hooks.yaml")
	if err := os.WriteFile(f.hooks, []byte(f.config.Hooks), 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	f.config.Brokers = max(f.config.Brokers, 1)
	if f.config.Cluster {
		return f.openCluster(ctx)
	}
	free, err := bustest.FindAddresses(1)
	if err != nil {
		return err
	}
	f.host, f.url = free[0], "nats://"+free[0]
	if f.config.Server {
		c := roles.NodeConfig{Name: Server, Dir: filepath.Join(f.config.Dir, "data"), Listen: f.host, Sync: f.config.Sync}
		if _, err := f.start(ctx, faults.Spec{Name: Server, Role: roles.Node, Config: always(c)}); err != nil {
			return err
		}
	}
	if err := f.addBrokers(ctx); err != nil || f.config.Kind == Embedded {
		return err
	}
	return f.addWorkers(ctx)
}

// always returns the same configuration for each process of a member.
func always(c any) func(faults.At) any { return func(faults.At) any { return c } }

// addBrokers starts the brokers. Without a separate server, the first broker contains the
// server and the other processes connect to it.
func (f *Field) addBrokers(ctx context.Context) error {
	for i := range f.config.Brokers {
		s := faults.Spec{Name: Numbered(Broker, i+1), Role: roles.Broker}
		c := roles.BrokerConfig{Hooks: f.hooks, AgentRate: f.config.AgentRate}
		add := f.start
		switch whole := f.config.Whole; {
		case i > 0 || f.config.Server:
			add = f.Add
			s.Config = func(at faults.At) any { c.NATS = at.NATS; return c }
		case whole != nil && f.config.Kind == Embedded:
			role, config := whole(f.alone(c))
			s.Role, s.Config = role, always(config)
		default:
			s.Config = always(f.alone(c))
		}
		if _, err := add(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// alone returns the configuration of a broker with its own server.
func (f *Field) alone(c roles.BrokerConfig) roles.BrokerConfig {
	c.Data, c.Listen, c.Sync = filepath.Join(f.config.Dir, "data"), f.host, f.config.Sync
	return c
}

func (f *Field) addWorkers(ctx context.Context) error {
	for i := range f.config.Workers {
		if _, err := f.Add(ctx, faults.Spec{Name: Numbered(Worker, i+1), Role: f.config.WorkerRole, Config: f.config.Worker}); err != nil {
			return err
		}
	}
	return nil
}

// The ports of a broker on a host of its own, for clients and for its peers.
const (
	clientPort = 4222
	routePort  = 6222
)

// peers returns the addresses of all brokers of a cluster, for clients and for their peers.
func (f *Field) peers() (listen, route []string, err error) {
	n := f.config.Brokers
	if f.config.Hosts == nil {
		addresses, err := bustest.FindAddresses(2 * n)
		if err != nil {
			return nil, nil, err
		}
		return addresses[:n], addresses[n:], nil
	}
	for _, h := range f.config.Hosts[:n] {
		listen, route = append(listen, fmt.Sprintf("%s:%d", h.Addr(), clientPort)), append(route, fmt.Sprintf("%s:%d", h.Addr(), routePort))
	}
	return listen, route, nil
}

// openCluster starts the brokers at the same time, because none is ready before others are
// up, and then the workers.
func (f *Field) openCluster(ctx context.Context) error {
	listen, route, err := f.peers()
	if err != nil {
		return err
	}
	f.url = "nats://" + strings.Join(listen, ",nats://")
	routes := strings.Split("nats-route://"+strings.Join(route, ",nats-route://"), ",")
	g, starting := errgroup.WithContext(ctx)
	for i := range listen {
		name := Numbered(Broker, i+1)
		c := roles.BrokerConfig{
			Hooks: f.hooks, Data: filepath.Join(f.config.Dir, name), Listen: listen[i], Sync: f.config.Sync, AgentRate: f.config.AgentRate,
			Cluster: &roles.ClusterConfig{Server: name, Listen: route[i], Routes: routes},
		}
		s := faults.Spec{Name: name, Role: roles.Broker, Config: func(at faults.At) any {
			if at.By != name+".1" {
				c.Hooks = "" // use the active configuration: the file may be older
			}
			return c
		}}
		if f.config.Hosts != nil {
			s.Host, s.Like = f.config.Hosts[i], f.config.Crew.Like()
			s.Like.Within = s.Host.In
		}
		v := f.member(s)
		g.Go(func() error { return v.Start(starting) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return f.addWorkers(ctx)
}
