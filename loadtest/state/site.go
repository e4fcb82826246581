package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest/ports"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// Teller is the name of this package's role. Other load tests fill queues with it, too.
const Teller = "teller"

// Roles are the roles of this package.
func Roles() map[string]proc.Start {
	return map[string]proc.Start{Teller: proc.Started(startTeller)}
}

// servers is how many a cluster has.
const servers = 3

// relaxed is how often a broker syncs that does not do so at every write.
const relaxed = time.Second

// A site is a fabric of its own, with a teller that asks it.
type site struct {
	name   string
	crew   *proc.Crew
	config roles.BrokerConfig
	nats   string
	broker *proc.Child
	teller *proc.Child
	nodes  []node // none: the server is embedded
}

// A node is one server of a cluster, whoever is up in its place.
type node struct {
	config roles.NodeConfig
	child  *proc.Child
}

// alone is a broker with its embedded server.
func (o *Options) alone(ctx context.Context, name string, sync time.Duration) (*site, error) {
	hooks, err := o.hooks()
	if err != nil {
		return nil, err
	}
	free, err := ports.Free(1)
	if err != nil {
		return nil, err
	}
	s := &site{name: name, crew: o.crew(), config: roles.BrokerConfig{
		Hooks: hooks, Data: filepath.Join(o.Dir, name), Listen: free[0], Sync: schema.Duration(sync),
	}}
	if _, err := s.up(ctx); err != nil {
		return nil, errors.Join(err, s.crew.Stop())
	}
	if err := s.tell(ctx, 1); err != nil {
		return nil, errors.Join(err, s.crew.Stop())
	}
	return s, nil
}

// crew is a crew of a site's own: sites end apart from each other.
func (o *Options) crew() *proc.Crew { return o.Crew.Like() }

// hooks writes the configuration: delivery, and nothing else.
func (o *Options) hooks() (string, error) {
	file := filepath.Join(o.Dir, "hooks.yaml")
	if err := os.WriteFile(file, []byte("presets: [delivery]\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing the configuration: %w", err)
	}
	return file, nil
}

// up starts the broker, and says how long that took until it was ready.
func (s *site) up(ctx context.Context) (time.Duration, error) {
	var at roles.Address
	began := time.Now()
	broker, err := s.crew.Start(ctx, roles.Broker, s.config, &at)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	s.broker, s.nats = broker, at.URL
	return time.Since(began), nil
}

// tell starts the teller.
func (s *site) tell(ctx context.Context, replicas int) (err error) {
	s.teller, err = s.crew.Start(ctx, Teller, TellerConfig{NATS: s.nats, Replicas: replicas}, nil)
	return err
}

// cluster is a broker on three servers. All that it keeps is kept by all three.
func (o *Options) cluster(ctx context.Context, name string, sync time.Duration) (*site, error) {
	hooks, err := o.hooks()
	if err != nil {
		return nil, err
	}
	s := &site{name: name, crew: o.crew()}
	urls, err := s.servers(ctx, filepath.Join(o.Dir, name), sync)
	if err == nil {
		s.config = roles.BrokerConfig{Hooks: hooks, NATS: strings.Join(urls, ",")}
		_, err = s.up(ctx)
	}
	if err == nil {
		err = s.spread(ctx)
	}
	if err == nil {
		err = s.tell(ctx, servers)
	}
	if err != nil {
		return nil, errors.Join(err, s.crew.Stop())
	}
	return s, nil
}

// servers starts them; each waits for clients, none for the others.
func (s *site) servers(ctx context.Context, dir string, sync time.Duration) ([]string, error) {
	free, err := ports.Free(2 * servers)
	if err != nil {
		return nil, err
	}
	var urls []string
	for i := range servers {
		c := roles.NodeConfig{
			Name: fmt.Sprintf("node-%d", i), Dir: filepath.Join(dir, fmt.Sprint(i)),
			Listen: free[i], Route: free[servers+i], Routes: free[servers:], Sync: schema.Duration(sync),
		}
		var at roles.Address
		child, err := s.crew.Start(ctx, roles.Node, c, &at)
		if err != nil {
			return nil, err
		}
		s.nodes = append(s.nodes, node{config: c, child: child})
		urls = append(urls, at.URL)
	}
	return urls, nil
}

// streams is a connection to what the site keeps.
func (s *site) streams(ctx context.Context) (jetstream.JetStream, *nats.Conn, error) {
	nc, err := bus.Connect(ctx, bus.Options{URL: s.nats, Name: "loadtest state"})
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return js, nc, nil
}

// spreadIn is how long it may take until all servers have everything.
const spreadIn = 60 * time.Second

// spread has every stream kept by all servers, and waits until it is.
func (s *site) spread(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, spreadIn, fmt.Errorf("not all servers had all streams within %v", spreadIn))
	defer cancel()
	js, nc, err := s.streams(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		if everywhere(ctx, js) {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// everywhere reports whether every stream is on all servers, all of them up to
// date, and asks for it where it is not.
func everywhere(ctx context.Context, js jetstream.JetStream) bool {
	done, some := true, false
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		some = true
		if info.Config.Replicas < servers {
			done = false
			info.Config.Replicas = servers
			_, _ = js.UpdateStream(ctx, info.Config) // tried again until it shows
			continue
		}
		done = done && current(info)
	}
	return done && some && list.Err() == nil
}

func current(info *jetstream.StreamInfo) bool {
	if info.Cluster == nil || info.Cluster.Leader == "" || len(info.Cluster.Replicas) != servers-1 {
		return false
	}
	for _, r := range info.Cluster.Replicas {
		if !r.Current || r.Offline {
			return false
		}
	}
	return true
}

// told has the teller make calls.
func (s *site) told(ctx context.Context, t Telling) (Told, error) {
	var f Told
	if err := s.teller.Ask(ctx, t, &f); err != nil {
		return f, fmt.Errorf("%s: %s: %w", s.name, t.Do, err)
	}
	return f, nil
}

// settle has the broker collect its garbage, and says what is left.
func (s *site) settle(ctx context.Context) (roles.Settled, error) {
	var left roles.Settled
	return left, s.broker.Ask(ctx, struct{}{}, &left)
}

// stop ends all of the site's processes: those first that ask, the servers last,
// also those that were started again in the place of others.
func (s *site) stop() error {
	return errors.Join(s.teller.Stop(), s.broker.Stop(), s.crew.Stop())
}
