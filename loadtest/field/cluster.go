package field

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/roles"
)

// The ports of a broker on a host of its own, for clients and for its peers.
const (
	clientPort = 4222
	routePort  = 6222
)

// peer has the addresses of a broker of a cluster.
type peer struct {
	listen, route string
	host          *faults.Host // nil: this one
}

// peers returns the addresses of all brokers.
func (f *Field) peers() (all []peer, err error) {
	n := max(f.config.Brokers, 1)
	if f.config.Hosts != nil {
		for _, h := range f.config.Hosts[:n] {
			all = append(all, peer{listen: fmt.Sprintf("%s:%d", h.Addr(), clientPort), route: fmt.Sprintf("%s:%d", h.Addr(), routePort), host: h})
		}
		return all, nil
	}
	addresses, err := bustest.FindAddresses(2 * n)
	if err != nil {
		return nil, err
	}
	for i := range n {
		all = append(all, peer{listen: addresses[i], route: addresses[n+i]})
	}
	return all, nil
}

// openCluster starts the brokers at the same time, because none is ready before others are
// up, and then the workers.
func (f *Field) openCluster(ctx context.Context) error {
	peers, err := f.peers()
	if err != nil {
		return err
	}
	var urls, routes []string
	for _, p := range peers {
		urls, routes = append(urls, "nats://"+p.listen), append(routes, "nats-route://"+p.route)
	}
	f.url = strings.Join(urls, ",")
	g, starting := errgroup.WithContext(ctx)
	for i, p := range peers {
		name := Numbered(Broker, i+1)
		c := roles.BrokerConfig{
			Hooks: f.hooks, Data: filepath.Join(f.site.Dir, name), Listen: p.listen, Sync: f.config.Sync, AgentRate: f.config.AgentRate,
			Cluster: &roles.ClusterConfig{Server: name, Listen: p.route, Routes: routes},
		}
		s := faults.Spec{Like: f.site.Crew}
		if p.host != nil {
			s.Like = f.site.Crew.Like()
			s.Like.Within, s.Host = p.host.In, p.host
		}
		v := f.member(Member{Name: name, Role: roles.Broker, Config: func(at At) any {
			if at.By != first(name) {
				c.Hooks = "" // use the active configuration: the file may be older
			}
			return c
		}}, s)
		g.Go(func() error { return v.Start(starting) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return f.addWorkers(ctx)
}

// first returns the name of a member's first process.
func first(member string) string { return member + ".1" }

// Peer returns the client address of broker n of a cluster, counted from 1.
func (f *Field) Peer(n int) string { return strings.Split(f.url, ",")[n-1] }
