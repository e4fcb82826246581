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
	// leaseFor is how long a lease lives when nobody renews it.
	leaseFor = 15 * time.Second
	// maxNode bounds what a broker says of itself.
	maxNode = 16 << 10
)

// A Node is what a broker says of itself, in its lease.
type Node struct {
	ID string `json:"id"`
	// Instance is the id of its micro service.
	Instance string `json:"instance,omitzero"`
	// Embedded: the NATS server runs in its process, so that its leases end
	// with the process that has the data directory.
	Embedded bool `json:"embedded,omitzero"`
	// Server is the name of that server in its cluster; empty: it is in none.
	Server string `json:"server,omitzero"`
	// Active is the version that it answers with; 0: none yet.
	Active uint64 `json:"active"`
	// Candidate is what it says of the proposed version; nil: nothing yet.
	Candidate *schema.Candidate `json:"candidate,omitzero"`
	// Freeze is the version of what is frozen that it goes by.
	Freeze uint64 `json:"freeze,omitzero"`
	// RealmUnreadable: it cannot read who may use its server, and goes by what it knew before.
	RealmUnreadable bool `json:"realm_unreadable,omitzero"`
}

// nodeKey is the key of a broker's lease.
func nodeKey(id string) (string, error) {
	tok, err := bus.Token(id)
	if err != nil {
		return "", fmt.Errorf("a broker's lease: %w", err)
	}
	return nodePrefix + tok, nil
}

// Nodes are the brokers that hold a lease, by their ids. All leases written
// before the call are among them, and none that ended.
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

// Forget ends the leases of brokers that are known to be dead, without waiting
// for them to lapse. One that is renewed meanwhile stays.
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

// held is a lease as it is in the bucket.
type held struct {
	key      string
	revision uint64
	node     Node
}

// leases reads all leases from the leader, by their keys.
func (c *Configs) leases(ctx context.Context) ([]held, error) {
	entries, err := c.bucket.Matching(ctx, nodePrefix+"*")
	if err != nil {
		return nil, err
	}
	var all []held
	for _, e := range entries {
		if len(e.Value) == 0 {
			continue // a marker of one that ended
		}
		l := held{key: e.Key, revision: e.Revision}
		if err := schema.Unmarshal(e.Value, &l.node); err != nil {
			return nil, fmt.Errorf("the lease %s of the bucket %s cannot be read: %w", e.Key, ConfigBucket, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// value is the node as JSON, with as many of its load errors as there is room for.
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

// sameCandidate reports whether a and b say the same.
func sameCandidate(a, b *schema.Candidate) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version && a.Error == b.Error && maps.Equal(a.LoadErrors, b.LoadErrors)
}
