package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	nodePrefix = "node."
	// leaseFor is how long a lease lives without a renewal.
	leaseFor = 15 * time.Second
	// maxNode bounds the content of a lease.
	maxNode = 16 << 10
)

// A Node is the content of a broker's lease.
type Node struct {
	ID string `json:"id"`
	// Instance is the id of its micro service.
	Instance string `json:"instance,omitzero"`
	// Embedded: the NATS server runs in the broker's process, so its leases end with the process
	// that uses the data directory.
	Embedded bool `json:"embedded,omitzero"`
	// Server is the name of that server in its cluster; empty: no cluster.
	Server string `json:"server,omitzero"`
	// Active is the version that it answers with; 0: none yet.
	Active uint64 `json:"active"`
	// Candidate is its report on the proposed version; nil: no report yet.
	Candidate *schema.Candidate `json:"candidate,omitzero"`
	// Freeze is the version of the freezes that it applies.
	Freeze uint64 `json:"freeze,omitzero"`
	// RealmUnreadable: it cannot read its realm, and uses the permissions that it read last.
	RealmUnreadable bool `json:"realm_unreadable,omitzero"`
}

// nodeKey returns the key of a broker's lease.
func nodeKey(id string) (string, error) {
	tok, err := bus.Token(id)
	if err != nil {
		return "", fmt.Errorf("a broker's lease: %w", err)
	}
	return nodePrefix + tok, nil
}

// Nodes returns the brokers with a lease, sorted by key. It includes all leases that were written before
// the call, and no ended one.
func (c *Configs) Nodes(ctx context.Context) ([]Node, error) {
	leases, err := c.leases(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the leases of the brokers: %w", err)
	}
	nodes := make([]Node, len(leases))
	for i, l := range leases {
		nodes[i] = l.node
	}
	return nodes, nil
}

// Forget ends the leases of brokers that are dead, before they lapse. A lease that is renewed at the same
// time stays.
func (c *Configs) Forget(ctx context.Context, dead func(Node) bool) error {
	leases, err := c.leases(ctx)
	if err != nil {
		return fmt.Errorf("reading the leases of the brokers: %w", err)
	}
	var errs []error
	for _, l := range leases {
		if !dead(l.node) {
			continue
		}
		err := c.kv.Purge(ctx, l.key, jetstream.PurgeTTL(leaseFor), jetstream.LastRevision(l.revision))
		if err != nil && !kv.Refused(err) {
			errs = append(errs, fmt.Errorf("ending the lease of broker %s: %w", l.node.ID, err))
		}
	}
	return errors.Join(errs...)
}

// held is a lease in the bucket.
type held struct {
	key      string
	revision uint64
	node     Node
}

// leases reads all leases from the leader, sorted by key.
func (c *Configs) leases(ctx context.Context) ([]held, error) {
	entries, err := c.bucket.Matching(ctx, nodePrefix+"*")
	if err != nil {
		return nil, err
	}
	var all []held
	for _, e := range entries {
		if len(e.Value) == 0 {
			continue // the marker of an ended lease
		}
		l := held{key: e.Key, revision: e.Revision}
		if err := schema.Unmarshal(e.Value, &l.node); err != nil {
			return nil, fmt.Errorf("the lease %s of the bucket %s cannot be read: %w", e.Key, ConfigBucket, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// value returns the node as JSON, with as many load errors as maxNode allows.
func (n Node) value() ([]byte, error) {
	data, err := schema.Marshal(n)
	if err != nil || len(data) <= maxNode || n.Candidate == nil {
		return data, err
	}
	short := *n.Candidate
	short.Error, short.LoadErrors = cut(short.Error), schema.FittingErrors(short.LoadErrors, maxNode-4*maxNote)
	n.Candidate = &short
	return schema.Marshal(n)
}

// sameCandidate reports whether two reports are equal.
func sameCandidate(a, b *schema.Candidate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version && a.Error == b.Error && maps.Equal(a.LoadErrors, b.LoadErrors)
}
