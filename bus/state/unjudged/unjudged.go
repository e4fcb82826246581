// Package unjudged remembers the calls that no broker judged. Shims report them when a
// broker answers again. Each call counts once, however often a shim reports it and to
// whichever broker.
package unjudged

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

// Bucket is the bucket of such calls, by their events' ids.
const Bucket = "hook_unjudged"

const (
	// keptFor is how long a call is remembered: a shim that hands it in later still
	// was stopped in between for longer, and it counts twice.
	keptFor = 7 * 24 * time.Hour
	// The bucket's room, and what it must have if there is not so much.
	maxBytes, minBytes = 32 << 20, 1 << 20
	// maxValue bounds one call.
	maxValue = 16 << 10
	// atOnce is how many are written side by side.
	atOnce = 8
)

// ErrUnavailable says that not all of it could be stored in time. What was is
// known now.
var ErrUnavailable = errors.New("calls that were not judged cannot be recorded now")

// Options say how the calls are kept.
type Options struct {
	// Replicas of the bucket; one that is there gets more, but never less; 0 is 1.
	Replicas int
	// Room is how much the server may store of everything together, of which a
	// bucket that is made takes its share; 0: plenty.
	Room int64
}

// Calls are the calls that nobody judged.
type Calls struct{ bucket *kv.Bucket }

// Open makes the bucket, or opens the one that is there.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Calls, error) {
	b, err := kv.Open(ctx, js, jetstream.KeyValueConfig{
		Bucket: Bucket, Description: "the calls of the hook fabric's agents that no broker judged", Replicas: max(o.Replicas, 1),
		Storage: jetstream.FileStorage, History: 1, TTL: keptFor, MaxBytes: kv.Share(o.Room, 64, maxBytes, minBytes), MaxValueSize: maxValue,
	}, minBytes)
	if err != nil {
		return nil, err
	}
	return &Calls{b}, nil
}

// Add stores calls, whose event ids are UUIDs, and tells first of each that was
// not known before: of all who say so at once, one is told. first may be called
// side by side. known counts the others.
func (c *Calls) Add(ctx context.Context, calls []schema.Unjudged, first func(*schema.Unjudged)) (known int, err error) {
	var all errgroup.Group
	all.SetLimit(atOnce)
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
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for _, b := range before {
		if b {
			known++
		}
	}
	return known, nil
}

// byHeader says who stored a call, so that who did not hear whether it worked
// knows their own.
const byHeader = "Hook-By"

// add stores one, and reports whether it was known before.
func (c *Calls) add(ctx context.Context, u *schema.Unjudged) (known bool, err error) {
	by := nuid.Next()
	data, err := schema.Marshal(u)
	if err != nil {
		return false, err
	}
	err = kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		// A refusal can be spurious, and after an error it may be there all the same.
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

// Unstored returns why nothing was stored of what was written last; nil: it was.
func (c *Calls) Unstored() error { return c.bucket.Unstored() }

// Anew forgets that: the server was mended.
func (c *Calls) Anew() { c.bucket.Anew() }
