package state

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// seedKey is the key of what the brokers' signatures are made of.
const seedKey = "seed"

// seedSize is how many random bytes that is.
const seedSize = 32

// Seed is what all brokers of the fabric make the key of, by which they sign what
// shims keep. It is made once: of all who come at once, one makes it. Where
// somebody deleted it, another one is made, and shims that know the key before
// refuse what is signed by it, until a person tells them.
//
// Whoever can read the bucket can sign; it is never logged.
func (c *Configs) Seed(ctx context.Context) (seed []byte, err error) {
	err = kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		e, err := c.bucket.Last(ctx, seedKey)
		if err != nil {
			return false, err
		}
		if seed = e.Value; e.Revision > 0 && e.Kind == kv.Put {
			if len(seed) != seedSize {
				return true, fmt.Errorf("it has %d bytes, and must have %d; delete the key %s of the bucket %s to have another one made",
					len(seed), seedSize, seedKey, ConfigBucket)
			}
			return true, nil
		}
		seed = make([]byte, seedSize)
		if _, err := rand.Read(seed); err != nil {
			return true, err
		}
		_, err = c.bucket.Write(ctx, kv.Write{Key: seedKey, Value: seed, Last: e.Revision})
		if kv.Refused(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("the seed of the policies' key: %w", err)
	}
	return seed, nil
}
