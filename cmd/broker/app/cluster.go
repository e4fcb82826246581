package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/bus/chown"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// A Cluster holds the flags of the cluster of embedded servers. The zero Cluster is no cluster.
type Cluster struct {
	// Name is the name of the cluster, Server the name of this server in it.
	Name, Server string
	// Listen is the address for the other servers, Routes are their addresses.
	Listen string
	Routes []string
	// Secret is a file with the secret that the servers share, CA one with the authorities of
	// their certificates.
	Secret, CA string
}

func clusterFlags(f *pflag.FlagSet, c *Cluster, l *server.Leaf, replicas *int) {
	f.StringVar(&c.Name, "cluster-name", "", "name of the cluster that this broker joins; its brokers replicate all data (default: no cluster)")
	f.StringVar(&c.Server, "name", "", "this broker's name in the cluster (default: a generated name, which the data directory keeps)")
	f.StringVar(&c.Listen, "cluster-listen", "", "address at which this broker accepts the other brokers of the cluster")
	f.StringSliceVar(&c.Routes, "routes", nil, "addresses of the cluster's brokers: nats-route://HOST:PORT,…")
	f.StringVar(&c.Secret, "cluster-secret", "", "file with the secret that the cluster's brokers share, at least 16 characters")
	f.StringVar(&c.CA, "cluster-tls-ca", "", "PEM file of CA certificates that verify the other brokers of the cluster, and the hub (default: --tls-ca for the cluster, the system's CA certificates for the hub)")
	f.IntVar(replicas, "replicas", 0, "number of servers that store each stream: 1, 3 or 5; existing streams get more copies, never fewer; 0: 3 in a cluster of at least 3 brokers, 1 otherwise and with --nats")
	f.StringVar(&l.Listen, "leaf-listen", "", "address at which this broker accepts brokers of other sites as leaf nodes")
	f.StringSliceVar(&l.Remotes, "leaf-remotes", nil, "join the hub at these addresses as a leaf node, and store nothing here: nats-leaf://HOST:PORT,…")
}

// maxSecret bounds the file of a secret, in bytes.
const maxSecret = 4096

// read returns the cluster as the server takes it; nil: no cluster.
func (c *Cluster) read() (*server.Cluster, error) {
	if c.Name == "" {
		if c.Listen != "" || len(c.Routes) > 0 || c.Secret != "" {
			return nil, program.UsageError("--cluster-listen, --routes and --cluster-secret need --cluster-name; name the cluster, or remove them")
		}
		return nil, nil //nolint:nilnil // most brokers are in no cluster
	}
	e := &server.Cluster{Name: c.Name, Server: c.Server, Listen: c.Listen, Routes: c.Routes, CA: c.CA}
	if c.Secret == "" {
		return e, nil
	}
	info, err := os.Stat(c.Secret)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the file of --cluster-secret: %w", err)
	case info.Size() > maxSecret:
		return nil, fmt.Errorf("the cluster secret in %s has %d bytes; use at most %d", c.Secret, info.Size(), maxSecret)
	}
	if err := chown.Private(c.Secret); err != nil {
		return nil, fmt.Errorf("the cluster secret: %w", err)
	}
	secret, err := os.ReadFile(c.Secret)
	if err != nil {
		return nil, fmt.Errorf("cannot read the file of --cluster-secret: %w", err)
	}
	if e.Secret = strings.TrimSpace(string(secret)); e.Secret == "" {
		return nil, fmt.Errorf("the cluster secret in %s is empty; write one, such as the output of 'openssl rand -hex 32'", c.Secret)
	}
	return e, nil
}

// joinCluster waits until the cluster can store.
func (b *Broker) joinCluster(ctx context.Context) error {
	if b.server.IsLeaf() {
		b.log.Info("joining the hub", "remotes", b.opt.Leaf.Remotes)
	}
	if !b.server.Clustered() {
		return b.awaitServers(ctx, 0)
	}
	b.log.Info("joining the cluster", "cluster", b.opt.Cluster.Name, "name", b.server.Name(), "routes", b.opt.Cluster.Routes)
	return b.awaitServers(ctx, 0)
}

// awaitServers waits for the leader of the cluster and for at least so many servers.
func (b *Broker) awaitServers(ctx context.Context, least int) error {
	defer b.state.Store(b.state.Load())
	err := b.server.Await(ctx, least, func(waiting string) {
		b.state.Store(&waiting)
		b.log.Warn(waiting)
	})
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped while %w", err)
	}
	return err
}

// awaitReplicas waits for as many servers as are to store a new fabric. An existing fabric needs
// only more than half of them.
func (b *Broker) awaitReplicas(ctx context.Context, js jetstream.JetStream) error {
	if b.server == nil || !b.server.Clustered() {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if _, err := js.KeyValue(asking, state.ConfigBucket); !errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil // it exists, or opening it returns the error
	}
	return b.awaitServers(ctx, b.replicas())
}

// stores reports whether this broker's own data directory holds the fabric's data.
func (b *Broker) stores() bool { return b.server != nil && !b.server.IsLeaf() }

// shares reports whether other servers store data with this broker, or for it, so that it can be
// cut off from them.
func (b *Broker) shares() bool { return !b.stores() || b.server.Clustered() }

// serverName returns the embedded server's name in its cluster; empty: no cluster.
func (b *Broker) serverName() string {
	if b.server == nil || !b.server.Clustered() {
		return ""
	}
	return b.server.Name()
}

// replicas returns how many servers store each stream.
func (b *Broker) replicas() int {
	switch {
	case b.opt.Replicas > 0:
		return b.opt.Replicas
	case b.server != nil && b.server.Clustered() && b.server.Members() >= 3:
		return 3
	}
	return 1
}

// leaf returns the options of leaf nodes as the server takes them.
func (b *Broker) leaf() *server.Leaf {
	l := b.opt.Leaf
	l.Creds, l.CA = b.opt.Creds, b.opt.Cluster.CA
	return &l
}
