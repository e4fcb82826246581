package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// A plan has the settings of one store.
type plan struct {
	bucket, description string
	// livesFor is the lifetime of an object, renewAfter the age from which storing it again renews it.
	livesFor, renewAfter time.Duration
	// most is the size of the store, limited to one of parts of the server's space, but at least least.
	most, parts, least int64
	// retries is how often the creation is tried again without enough space.
	retries int
	// uploads is the number of concurrent uploads.
	uploads int
}

// planOf returns the plan of a store.
func planOf(bucket string) plan {
	if bucket == Histories {
		// They are read within seconds, and clients check that a part exists before they name it. So they live
		// for a short time, and their creation does not wait for space.
		return plan{
			bucket: Histories, description: "parts of conversations for the hooks of the hook fabric that need them",
			livesFor: 2 * time.Hour, renewAfter: time.Hour, most: 512 << 20, parts: 8, least: 8 << 20, uploads: 4,
		}
	}
	return plan{
		bucket: Bucket, description: "what is too large for messages of the hook fabric",
		livesFor: 8 * 24 * time.Hour, renewAfter: 24 * time.Hour, most: 1 << 30, parts: 4, least: 16 << 20, retries: kv.Attempts / 2, uploads: 1,
	}
}

// open creates the store, unless it exists.
func (p plan) open(ctx context.Context, js jetstream.JetStream, o Options) error {
	// Open first, because creating reserves the space a second time.
	_, err := js.ObjectStore(ctx, p.bucket)
	if err == nil {
		return kv.Grow(ctx, js, p.stream(), o.Replicas)
	}
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return err
	}
	room := kv.Share(o.Room, p.parts, p.most, p.least)
	for i := 0; ; i++ {
		_, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: p.bucket, Description: p.description,
			TTL: p.livesFor, MaxBytes: room, Storage: jetstream.FileStorage, Replicas: max(o.Replicas, 1),
		})
		if err != nil {
			// Another process may be creating it, which reserves its space first.
			if _, oerr := js.ObjectStore(ctx, p.bucket); oerr == nil {
				return nil
			}
		}
		switch {
		case errors.Is(err, jetstream.ErrBucketExists):
			return nil
		case !kv.NoRoom(err):
			return err
		case room/2 >= p.least:
			room /= 2
		case i < p.retries:
			if err := kv.Again(ctx, i); err != nil {
				return err
			}
		default:
			return fmt.Errorf("it needs %d MiB, and the server has less; free space on the server's disk, or use another disk: %w", p.least>>20, err)
		}
	}
}

func (p plan) stream() string      { return "OBJ_" + p.bucket }
func (p plan) metaPrefix() string  { return "$O." + p.bucket + ".M." }
func (p plan) chunkPrefix() string { return "$O." + p.bucket + ".C." }
