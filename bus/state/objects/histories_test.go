package objects_test

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/schema"
)

func TestConversationsTakeNoSpaceFromWaitingMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.StartWith(t, server.Options{MaxStore: 40 << 20}))
		others := open(t, js)
		histories, err := objects.Open(t.Context(), js, objects.Options{Bucket: objects.Histories, Room: 40 << 20})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = histories.Close() })
		var first schema.Object
		for i := uint64(0); err == nil; i++ {
			var o schema.Object
			if o, err = histories.Put(t.Context(), bytes.NewReader(noise(i, 1<<20))); i == 0 {
				first = o
			}
			if i > 9 {
				t.Fatal("a store of 8 MiB takes more than 9")
			}
		}
		if !errors.Is(err, objects.ErrFull) {
			t.Errorf("full: %v", err)
		}
		put(t, others, noise(1, 3<<20))
		if fresh, err := histories.Fresh(t.Context(), first); !fresh || err != nil {
			t.Errorf("%t, %v", fresh, err)
		}
		<-time.After(61 * time.Minute)
		if fresh, err := histories.Fresh(t.Context(), first); fresh || err != nil {
			t.Errorf("it lives on for less than an hour: %t, %v", fresh, err)
		}
		if err := others.Has(t.Context(), first); !errors.Is(err, objects.ErrNotFound) {
			t.Errorf("it lies in the other store: %v", err)
		}
		<-time.After(time.Hour)
		put(t, histories, noise(20, 1<<20)) // there is room again
	})
}

func TestTheBrokerStartsWithoutSpaceForConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.StartWith(t, server.Options{MaxStore: 20 << 20}))
		open(t, js) // takes 16 of them
		began := time.Now()
		_, err := objects.Open(t.Context(), js, objects.Options{Bucket: objects.Histories, Room: 20 << 20})
		if err == nil || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
