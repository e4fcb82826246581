package state

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/nats-io/nats.go/jetstream"
)

// KeyBucket is the bucket of what only brokers may read: its key `seed` is what
// they sign by.
const KeyBucket = "hook_keys"

const (
	// seedKey is the key of what the brokers' signatures are made of.
	seedKey = "seed"
	// seedSize is how many random bytes that is.
	seedSize = 32
	// maxKeyBytes bounds the bucket.
	maxKeyBytes = 1 << 20
)

// Seed is what all brokers of the fabric make the key of, by which they sign what
// shims keep. It is made once: of all who come at once, one makes it. Where
// somebody deleted it, another one is made, and shims that know the key before
// refuse what is signed by it, until a person tells them.
//
// Whoever can read the bucket can sign; it is never logged.
func (c *Configs) Seed(ctx context.Context) (seed []byte, err error) {
	keys, err := c.keyBucket(ctx)
	if err == nil {
		err = kv.Retry(ctx, func(ctx context.Context) (done bool, err error) {
			seed, done, err = c.trySeed(ctx, keys)
			return done, err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the seed of the policies' key: %w", err)
	}
	return seed, nil
}

// trySeed reads the seed, or makes it; it reports whether that is settled.
func (c *Configs) trySeed(ctx context.Context, keys *kv.Bucket) (seed []byte, done bool, err error) {
	e, err := keys.Last(ctx, seedKey)
	if err != nil {
		return nil, false, err
	}
	if seed = e.Value; e.Revision > 0 && e.Kind == kv.Put {
		if len(seed) != seedSize {
			return nil, true, fmt.Errorf("it has %d bytes, and must have %d; delete the key %s of the bucket %s to have another one made",
				len(seed), seedSize, seedKey, KeyBucket)
		}
		return seed, true, c.forgetSeed(ctx)
	}
	if seed, err = c.firstSeed(ctx, e.Revision); err != nil {
		return nil, true, err
	}
	_, err = keys.Write(ctx, kv.Write{Key: seedKey, Value: seed, Last: e.Revision})
	if kv.Refused(err) {
		return nil, false, nil
	}
	if err == nil {
		err = c.forgetSeed(ctx)
	}
	return seed, err == nil, err
}

// firstSeed is a new seed, or the one that earlier releases kept where workers can
// read it, if none was ever made here: shims know its key.
func (c *Configs) firstSeed(ctx context.Context, revision uint64) ([]byte, error) {
	if revision == 0 {
		e, err := c.bucket.Last(ctx, seedKey)
		if err != nil {
			return nil, err
		}
		if e.Kind == kv.Put && len(e.Value) == seedSize {
			return e.Value, nil
		}
	}
	seed := make([]byte, seedSize)
	_, err := rand.Read(seed)
	return seed, err
}

// forgetSeed takes away what earlier releases left where workers can read it.
func (c *Configs) forgetSeed(ctx context.Context) error {
	e, err := c.bucket.Last(ctx, seedKey)
	if err != nil || e.Revision == 0 || e.Kind != kv.Put {
		return err
	}
	_, err = c.bucket.Write(ctx, kv.Write{Key: seedKey, Last: e.Revision, Purge: true})
	if kv.Refused(err) {
		return nil // another broker did it
	}
	return err
}

// keyBucket opens the bucket, or makes it.
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
