package state_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state"
)

// Brokers that start together, and later ones, sign with one key.
func TestBrokersAgreeOnASeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		open(t, js)
		seeds := make([][]byte, 8)
		var all sync.WaitGroup
		for i := range seeds {
			all.Go(func() {
				c, err := state.OpenConfigs(t.Context(), js, state.ConfigOptions{})
				if err == nil {
					seeds[i], err = c.Seed(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		late, err := open(t, js).Seed(t.Context())
		if err != nil || len(late) != 32 || bytes.Equal(late, make([]byte, 32)) {
			t.Fatalf("%d bytes, %v", len(late), err)
		}
		for _, s := range seeds {
			if !bytes.Equal(s, late) {
				t.Error("two brokers have different seeds")
			}
		}
	})
}

func TestADeletedSeedIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c := open(t, js)
		one, err := c.Seed(t.Context())
		store, kerr := js.KeyValue(t.Context(), state.KeyBucket)
		if err := errors.Join(err, kerr); err != nil {
			t.Fatal(err)
		}
		if err := store.Delete(t.Context(), "seed"); err != nil {
			t.Fatal(err)
		}
		two, err := c.Seed(t.Context())
		if err != nil || len(two) != 32 || bytes.Equal(one, two) {
			t.Errorf("%v", err)
		}
		if _, err := store.Put(t.Context(), "seed", []byte("short")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Seed(t.Context()); err == nil {
			t.Error("a seed of five bytes is accepted")
		}
	})
}
