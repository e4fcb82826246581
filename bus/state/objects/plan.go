package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// A plan is how the objects of one store are kept.
type plan struct {
	bucket, description string
	// livesFor is how long an object is kept, renewAfter how old it must be for
	// its life to begin anew when it is put again.
	livesFor, renewAfter time.Duration
	// most is what the store takes of the server's disk, or one of so many parts of
	// it, and least what it must have if there is not so much.
	most, parts, least int64
	// patience is how often it is tried again while there is no room for that.
	patience int
	// uploads is how many are stored at once here.
	uploads int
}

// planOf is the plan of a store.
func planOf(bucket string) plan {
	if bucket == Histories {
		// They are read within seconds, and who names one asks first whether it is
		// there. So they are short-lived, and nobody waits for their room.
		return plan{
			bucket: Histories, description: "parts of conversations for the hooks of the hook fabric that need them",
			livesFor: 2 * time.Hour, renewAfter: time.Hour, most: 512 << 20, parts: 8, least: 8 << 20, uploads: 4,
		}
	}
	return plan{
		bucket: Bucket, description: "what is too large for messages of the hook fabric",
		livesFor: 8 * 24 * time.Hour, renewAfter: 24 * time.Hour, most: 1 << 30, parts: 4, least: 16 << 20, patience: kv.Attempts / 2, uploads: 1,
	}
}

// open makes the store, unless it is there.
func (p plan) open(ctx context.Context, js jetstream.JetStream, o Options) error {
	// Opened first: to create it would ask for its room a second time.
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
			// Somebody else may be making it, which takes its room before it is there.
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
		case i < p.patience:
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
