package field

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// The names of a field's members. Those of brokers and workers are followed by numbers.
const (
	Server = "server"
	Broker = "broker"
	Worker = "worker"
)

// Numbered returns the name of the n-th member of a kind, counted from 1.
func Numbered(kind string, n int) string { return fmt.Sprintf("%s-%d", kind, n) }

// openLocal starts the server, then the brokers, then the workers.
func (f *Field) openLocal(ctx context.Context) error {
	if err := f.write(); err != nil {
		return err
	}
	if f.config.Cluster {
		return f.openCluster(ctx)
	}
	free, err := bustest.FindAddresses(1)
	if err != nil {
		return err
	}
	f.address = address{host: free[0], url: "nats://" + free[0]}
	if f.config.Server {
		if err := f.addServer(ctx); err != nil {
			return err
		}
	}
	if err := f.addBrokers(ctx); err != nil {
		return err
	}
	if f.config.Kind == Embedded {
		return nil
	}
	return f.addWorkers(ctx)
}

// write writes the configuration into the site's directory.
func (f *Field) write() error {
	f.hooks = filepath.Join(f.site.Dir, "hooks.yaml")
	if err := os.WriteFile(f.hooks, []byte(f.config.Hooks), 0o600); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return nil
}

// addServer starts the separate server process.
func (f *Field) addServer(ctx context.Context) error {
	c := roles.NodeConfig{Name: Server, Dir: filepath.Join(f.site.Dir, "data"), Listen: f.host, Sync: f.config.Sync}
	_, err := f.start(ctx, Member{Name: Server, Role: roles.Node, Config: func(At) any { return c }}, nil)
	return err
}

// addBrokers starts the brokers. Without a separate server, the first broker contains the
// server and the other processes connect to it.
func (f *Field) addBrokers(ctx context.Context) error {
	for i := range max(f.config.Brokers, 1) {
		m := Member{Name: Numbered(Broker, i+1), Role: roles.Broker, Config: func(at At) any {
			return roles.BrokerConfig{Hooks: f.hooks, NATS: at.NATS, AgentRate: f.config.AgentRate}
		}}
		if i > 0 || f.config.Server {
			if _, err := f.Add(ctx, m); err != nil {
				return err
			}
			continue
		}
		c := roles.BrokerConfig{Hooks: f.hooks, Data: filepath.Join(f.site.Dir, "data"), Listen: f.host, Sync: f.config.Sync, AgentRate: f.config.AgentRate}
		m.Config = func(At) any { return c }
		if whole := f.config.Whole; whole != nil && f.config.Kind == Embedded {
			role, config := whole(c)
			m.Role, m.Config = role, func(At) any { return config }
		}
		if _, err := f.start(ctx, m, nil); err != nil {
			return err
		}
	}
	return nil
}

// addWorkers starts the workers.
func (f *Field) addWorkers(ctx context.Context) error {
	worker := f.config.Worker
	if worker == nil {
		worker = f.hookworker
	}
	for i := range f.config.Workers {
		name := Numbered(Worker, i+1)
		link, err := f.link(name)
		if err != nil {
			return err
		}
		role, config := worker(name, f.URL(name))
		if _, err := f.start(ctx, Member{Name: name, Role: role, Config: func(At) any { return config }}, link); err != nil {
			return err
		}
	}
	return nil
}

// hookworker returns the role and the configuration of the standard worker, for scenarios
// without a worker of their own.
func (f *Field) hookworker(_, url string) (role string, config any) {
	pool := f.config.Pool
	if pool == "" {
		pool = schema.DefaultPool
	}
	return roles.HookWorker, roles.WorkerConfig{NATS: url, Creds: f.config.Creds, Pool: pool}
}
