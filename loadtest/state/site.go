package state

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// Teller is the role of the client process. Package scale uses it too.
const Teller = "teller"

// Roles are the roles of this package.
func Roles() map[string]proc.Start {
	return map[string]proc.Start{Teller: proc.Started(startTeller)}
}

// servers is the number of servers of a cluster.
const servers = 3

// relaxed is the sync interval of a server that does not sync every write.
const relaxed = time.Second

// settling is how long nothing must have changed to count as settled.
const settling = 500 * time.Millisecond

// A site is a fabric of its own with a teller.
type site struct {
	name   string
	crew   *proc.Crew // a crew of its own: sites end separately
	nats   string
	broker *proc.Child
	teller *proc.Child
}

// alone starts a broker with its embedded server.
func (r *run) alone(ctx context.Context, name string, sync time.Duration) (*site, error) {
	s := &site{name: name, crew: r.Crew.Like()}
	return s, s.start(ctx, r.Dir, roles.BrokerConfig{Sync: schema.Duration(sync)}, 1)
}

// cluster starts a broker on three servers, each of which has all streams.
func (r *run) cluster(ctx context.Context, name string, sync time.Duration) (*site, error) {
	s := &site{name: name, crew: r.Crew.Like()}
	urls, err := s.servers(ctx, filepath.Join(r.Dir, name), sync)
	if err != nil {
		return nil, errors.Join(err, s.crew.Stop())
	}
	return s, s.start(ctx, r.Dir, roles.BrokerConfig{NATS: strings.Join(urls, ",")}, servers)
}

// start starts the broker and the teller. If it fails it stops all processes of the site.
func (s *site) start(ctx context.Context, dir string, c roles.BrokerConfig, replicas int) error {
	err := s.up(ctx, dir, c, replicas)
	if err != nil {
		err = errors.Join(fmt.Errorf("%s: %w", s.name, err), s.crew.Stop())
	}
	return err
}

func (s *site) up(ctx context.Context, dir string, c roles.BrokerConfig, replicas int) (err error) {
	if c, err = bench.Broker(filepath.Join(dir, s.name), "presets: [delivery]\n", c); err != nil {
		return err
	}
	var at roles.Address
	if s.broker, err = s.crew.Start(ctx, roles.Broker, c, &at); err != nil {
		return err
	}
	s.nats = at.URL
	if replicas > 1 {
		if err := s.spread(ctx); err != nil {
			return err
		}
	}
	s.teller, err = s.crew.Start(ctx, Teller, TellerConfig{NATS: s.nats, Replicas: replicas}, nil)
	return err
}

// servers starts the servers of a cluster. Each waits for clients, none for the others.
func (s *site) servers(ctx context.Context, dir string, sync time.Duration) ([]string, error) {
	free, err := bustest.FindAddresses(2 * servers)
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
		if _, err := s.crew.Start(ctx, roles.Node, c, &at); err != nil {
			return nil, err
		}
		urls = append(urls, at.URL)
	}
	return urls, nil
}

// streams connects to the streams of the site.
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

// spreadIn is the longest time until all servers have all streams.
const spreadIn = 60 * time.Second

// spread replicates every stream to all servers, and waits until it is complete.
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

// everywhere reports whether every stream is complete on all servers, and replicates those
// that are not.
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

// told makes the producer send calls and returns its figures.
func (s *site) told(ctx context.Context, t Telling) (Told, error) {
	var f Told
	if err := s.teller.Ask(ctx, t, &f); err != nil {
		return f, fmt.Errorf("%s: %s: %w", s.name, t.Do, err)
	}
	return f, nil
}

// settle makes the broker collect its garbage.
func (s *site) settle(ctx context.Context) (roles.Settled, error) {
	var left roles.Settled
	return left, s.broker.Ask(ctx, struct{}{}, &left)
}

// stop ends the processes of the site: clients first, servers last.
func (s *site) stop() error {
	return errors.Join(s.teller.Stop(), s.broker.Stop(), s.crew.Stop())
}

// writes counts the messages that the streams of items and cursors take while do runs.
func (s *site) writes(ctx context.Context, do func() error) (uint64, error) {
	js, nc, err := s.streams(ctx)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	before, err := quiet(ctx, js)
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := quiet(ctx, js)
	return after - before, err
}

// quiet waits until nothing is written any more, and returns the number of messages that
// were ever written to the streams of items and cursors.
func quiet(ctx context.Context, js jetstream.JetStream) (messages uint64, err error) {
	for last := ^uint64(0); messages != last; {
		last, messages = messages, 0
		if !measure.Pause(ctx, settling) {
			return 0, context.Cause(ctx)
		}
		list := js.ListStreams(ctx)
		for info := range list.Info() {
			if info.Config.Name == "KV_hook_injections" || info.Config.Name == "KV_hook_sequences" {
				messages += info.State.LastSeq
			}
		}
		if err := list.Err(); err != nil {
			return 0, fmt.Errorf("reading the streams: %w", err)
		}
	}
	return messages, nil
}
