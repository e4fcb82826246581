package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// UnjudgedBucket is the bucket of calls that no broker judged, by their events' ids.
const UnjudgedBucket = "hook_unjudged"

const (
	// unjudgedLifetime is how long a call is remembered. A shim that was stopped for longer may report it twice.
	unjudgedLifetime = 7 * 24 * time.Hour
	// The size of the bucket, and its least size on a small disk.
	maxUnjudgedBytes, minUnjudgedBytes = 32 << 20, 1 << 20
	// maxUnjudged bounds one call, in bytes.
	maxUnjudged = 16 << 10
	// unjudgedWrites bounds the concurrent writes of one report.
	unjudgedWrites = 8
)

// ErrUnjudgedUnavailable means that not all calls could be stored in time. Some may have been.
var ErrUnjudgedUnavailable = errors.New("calls that were not judged cannot be recorded now")

// UnjudgedOptions configure the bucket.
type UnjudgedOptions struct {
	// Replicas of the bucket; an existing bucket can get more, never fewer; 0: 1.
	Replicas int
	// Room is how many bytes the server may store in all, of which a new bucket gets a share; 0: unlimited.
	Room int64
}

// Unjudged remembers the calls that no broker judged. Shims report them when a broker answers again. Each call
// counts once, although shims may report it several times and to several brokers.
type Unjudged struct {
	kv.Health

	bucket *kv.Bucket
}

// OpenUnjudged creates or opens the bucket.
func OpenUnjudged(ctx context.Context, js jetstream.JetStream, o UnjudgedOptions) (*Unjudged, error) {
	b, err := kv.Open(ctx, js, jetstream.KeyValueConfig{
		Bucket: UnjudgedBucket, Description: "the calls of the hook fabric's agents that no broker judged", Replicas: max(o.Replicas, 1),
		Storage: jetstream.FileStorage, History: 1, TTL: unjudgedLifetime, MaxBytes: kv.Share(o.Room, 64, maxUnjudgedBytes, minUnjudgedBytes), MaxValueSize: maxUnjudged,
	}, minUnjudgedBytes)
	if err != nil {
		return nil, err
	}
	return &Unjudged{b, b}, nil
}

// Add stores calls, whose event ids are UUIDs, and calls first for each new one, possibly concurrently. Of
// several concurrent reports of one call only one is new. known counts the others.
func (c *Unjudged) Add(ctx context.Context, calls []schema.Unjudged, first func(*schema.Unjudged)) (known int, err error) {
	var all errgroup.Group
	all.SetLimit(unjudgedWrites)
	before := make([]bool, len(calls))
	for i := range calls {
		all.Go(func() (err error) {
			before[i], err = c.add(ctx, &calls[i])
			if err == nil && !before[i] {
				first(&calls[i])
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnjudgedUnavailable, err)
	}
	for _, b := range before {
		if b {
			known++
		}
	}
	return known, nil
}

// byHeader has a random id of the write, with which a writer recognises its own write after a lost answer.
const byHeader = "Hook-By"

// add stores a call, and reports whether it was known before.
func (c *Unjudged) add(ctx context.Context, u *schema.Unjudged) (known bool, err error) {
	by := nuid.Next()
	data, err := schema.Marshal(u)
	if err != nil {
		return false, err
	}
	err = kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		// A refusal can be spurious, and after an error the call may be stored.
		e, err := c.bucket.Last(ctx, u.EventID)
		if err != nil {
			return false, err
		}
		if e.Revision > 0 {
			known = e.Header.Get(byHeader) != by
			return true, nil
		}
		_, err = c.bucket.Write(ctx, kv.Write{Key: u.EventID, Value: data, Header: nats.Header{byHeader: {by}}})
		if kv.Refused(err) {
			return false, nil
		}
		return err == nil, err
	})
	return known, err
}
