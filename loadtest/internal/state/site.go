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
	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// servers is the number of servers of a cluster.
	servers = 3
	// relaxed is the sync interval of a server that does not sync every write.
	relaxed = time.Second
	// settling is how long nothing must have changed to count as settled.
	settling = 500 * time.Millisecond
	// spreadIn is the longest time until all servers have all streams.
	spreadIn = 60 * time.Second
	// delivery is the configuration of the brokers.
	delivery = "presets: [delivery]\n"
)

// A site is a fabric of its own with a client of its queue.
type site struct {
	*bench.Fabric
	name   string
	client *proc.Child
}

// alone starts a broker with its embedded server.
func (r *run) alone(ctx context.Context, name string, sync time.Duration) (*site, error) {
	f, err := r.Fabric(name, delivery, roles.BrokerConfig{Sync: schema.Duration(sync)})
	if err != nil {
		return nil, err
	}
	return opened(ctx, &site{Fabric: f, name: name}, 1)
}

// cluster starts a broker on three servers, each of which has all streams.
func (r *run) cluster(ctx context.Context, name string, sync time.Duration) (*site, error) {
	f, err := r.Fabric(name, delivery, roles.BrokerConfig{})
	if err != nil {
		return nil, err
	}
	s := &site{Fabric: f, name: name}
	if err := s.servers(ctx, filepath.Join(r.Dir, name), sync); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return opened(ctx, s, servers)
}

// opened starts the broker and the client of a site. If that fails it stops all processes.
func opened(ctx context.Context, s *site, replicas int) (*site, error) {
	err := s.Up(ctx)
	if err == nil && replicas > 1 {
		err = s.spread(ctx)
	}
	if err == nil {
		s.client, err = s.Crew.Start(ctx, roles.QueueClient, roles.QueueConfig{NATS: s.URL(), Replicas: replicas}, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.name, err), s.Stop())
	}
	return s, nil
}

// servers starts the servers of a cluster. Each waits for clients, none for the others.
func (s *site) servers(ctx context.Context, dir string, sync time.Duration) error {
	free, err := bustest.FindAddresses(2 * servers)
	if err != nil {
		return err
	}
	var urls []string
	for i := range servers {
		c := roles.NodeConfig{
			Name: fmt.Sprintf("node-%d", i), Dir: filepath.Join(dir, fmt.Sprint(i)),
			Listen: free[i], Route: free[servers+i], Routes: free[servers:], Sync: schema.Duration(sync),
		}
		var at roles.Address
		if _, err := s.Crew.Start(ctx, roles.Node, c, &at); err != nil {
			return err
		}
		urls = append(urls, at.URL)
	}
	s.Config.NATS = strings.Join(urls, ",")
	return nil
}

func (s *site) streams(ctx context.Context) (jetstream.JetStream, *nats.Conn, error) {
	nc, err := bus.Connect(ctx, bus.Options{URL: s.URL(), Name: "loadtest state"})
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
	}
	return js, nc, err
}

// spread replicates every stream to all servers, and waits until it is complete.
func (s *site) spread(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, spreadIn, fmt.Errorf("not all servers had all streams within %v", spreadIn))
	defer cancel()
	js, nc, err := s.streams(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	return load.Until(ctx, 100*time.Millisecond, func(ctx context.Context) error { return everywhere(ctx, js) })
}

// everywhere returns an error unless every stream is complete on all servers. It replicates
// those that are not.
func everywhere(ctx context.Context, js jetstream.JetStream) error {
	n, lacking := 0, []string(nil)
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		n++
		if info.Config.Replicas < servers {
			info.Config.Replicas = servers
			_, _ = js.UpdateStream(ctx, info.Config) // tried again until it shows
		}
		if why := roles.Lacking(info, servers-1); why != "" {
			lacking = append(lacking, info.Config.Name+" "+why)
		}
	}
	if n == 0 || len(lacking) > 0 {
		return fmt.Errorf("of %d streams some are not complete: %s", n, strings.Join(lacking, "; "))
	}
	return list.Err()
}

// ask makes the client send requests and returns their figures.
func (s *site) ask(ctx context.Context, q roles.QueueRequest) (roles.QueueFigures, error) {
	var f roles.QueueFigures
	if err := s.client.Ask(ctx, q, &f); err != nil {
		return f, fmt.Errorf("%s: %s: %w", s.name, q.Do, err)
	}
	return f, nil
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
		if !load.Pause(ctx, settling) {
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
