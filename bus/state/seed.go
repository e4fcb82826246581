package state

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/nats-io/nats.go/jetstream"
)

// KeyBucket is the bucket that only brokers may read. Its key `seed` holds the seed of their signing key.
const KeyBucket = "hook_keys"

const (
	// seedKey is the key of the seed.
	seedKey = "seed"
	// seedSize is the size of the seed, in random bytes.
	seedSize = 32
	// maxKeyBytes bounds the bucket.
	maxKeyBytes = 1 << 20
)

// Seed returns the seed of the key with which all brokers of the fabric sign what shims store. Of several
// concurrent brokers one makes it. If it is deleted, a new one is made, and shims that know the old key
// reject new signatures until a person confirms the new key.
//
// A process that can read the bucket can sign. The seed is never logged.
func (c *Configs) Seed(ctx context.Context) (seed []byte, err error) {
	keys, err := c.keyBucket(ctx)
	if err == nil {
		err = kv.Retry(ctx, func(ctx context.Context) (done bool, err error) {
			seed, done, err = trySeed(ctx, keys)
			return done, err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the seed of the policies' key: %w", err)
	}
	return seed, nil
}

// trySeed reads the seed, or makes it. It reports whether it is done.
func trySeed(ctx context.Context, keys *kv.Bucket) (seed []byte, done bool, err error) {
	e, err := keys.Last(ctx, seedKey)
	if err != nil {
		return nil, false, err
	}
	if seed = e.Value; e.Revision > 0 && e.Kind == kv.Put {
		if len(seed) != seedSize {
			return nil, true, fmt.Errorf("it has %d bytes, and must have %d; delete the key %s of the bucket %s to have another one made",
				len(seed), seedSize, seedKey, KeyBucket)
		}
		return seed, true, nil
	}
	seed = make([]byte, seedSize)
	if _, err := rand.Read(seed); err != nil {
		return nil, true, err
	}
	_, err = keys.Write(ctx, kv.Write{Key: seedKey, Value: seed, Last: e.Revision})
	if kv.Refused(err) {
		return nil, false, nil
	}
	return seed, err == nil, err
}

// keyBucket opens or creates the bucket.
func (c *Configs) keyBucket(ctx context.Context) (*kv.Bucket, error) {
	if b := c.keys.Load(); b != nil {
		return b, nil
	}
	b, err := kv.Open(ctx, c.js, jetstream.KeyValueConfig{
		Bucket: KeyBucket, Description: "what the brokers of the hook fabric sign by", Replicas: c.replicas,
		Storage: jetstream.FileStorage, History: 1, MaxBytes: maxKeyBytes,
	}, 0)
	if err != nil {
		return nil, err
	}
	c.keys.Store(b)
	return b, nil
}
