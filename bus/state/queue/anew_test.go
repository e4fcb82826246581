package queue_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// New items in a recreated bucket have the sequences of delivered ones.
func TestItemsInARecreatedBucketAreDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, err := queue.Open(t.Context(), bustest.JetStream(t, s), queue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for n := range uint64(3) {
			enqueue(t, q, item(n+1))
		}
		takes(t, claim(t, q, "e1"), "text 1", "text 2", "text 3")
		ack(t, q, "e1")
		if err := q.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := bustest.JetStream(t, s).DeleteKeyValue(t.Context(), queue.ItemBucket); err != nil {
			t.Fatal(err)
		}
		q = open(t, s, queue.Options{})
		enqueue(t, q, item(4))
		takes(t, claim(t, q, "e2"), "text 4")
	})
}

// A server that is behind may answer while there is no leader. Cursors must keep what they have about items that it does
// not have, and about new items.
func TestCursorsAreNotRewoundToAServerThatIsBehind(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		js := bustest.JetStream(t, s)
		q := open(t, s, queue.Options{})
		for n := range uint64(3) {
			enqueue(t, q, item(n+1))
		}
		takes(t, claim(t, q, "e1"), "text 1", "text 2", "text 3")
		var behind, lost atomic.Bool
		behind.Store(true)
		// changed has something of what was said or asked be something else.
		changed := func(body []byte, part, key string, value any) []byte {
			var all map[string]any
			if err := schema.Unmarshal(body, &all); err != nil {
				t.Error(err)
				return body
			}
			all[part].(map[string]any)[key] = value
			data, err := schema.Marshal(all)
			if err != nil {
				t.Error(err)
			}
			return data
		}
		far := bustest.Between(t, js, func(m *nats.Msg) bool {
			switch {
			case strings.Contains(m.Subject, ".all.fabric.u-") && !lost.Swap(true): // while there is no leader
			case strings.Contains(m.Subject, ".all.fabric.u-"):
				on := *m
				on.Subject = bustest.Beyond(m)
				stored, err := js.Conn().RequestMsg(&on, time.Second)
				if err != nil {
					t.Error(err)
					return false
				}
				ack(t, q, "e1")
				enqueue(t, q, item(4))
				takes(t, claim(t, q, "e2"), "text 4")
				_ = m.Respond(stored.Data)
			case !behind.Load() || !strings.Contains(m.Subject, "KV_"+queue.ItemBucket):
				return false
			case strings.Contains(m.Subject, "STREAM.INFO"):
				if said, err := js.Conn().Request(bustest.Beyond(m), m.Data, time.Second); err == nil {
					_ = m.Respond(changed(said.Data, "state", "last_seq", 1))
				}
			case strings.Contains(m.Subject, "CONSUMER.CREATE"):
				on := *m
				on.Subject, on.Data = bustest.Beyond(m), changed(m.Data, "config", "opt_start_seq", 100)
				_ = js.Conn().PublishMsg(&on)
			default:
				return false
			}
			return true
		})
		late, err := queue.Open(t.Context(), far, queue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		behind.Store(false)
		<-time.After(5 * time.Second) // all know all
		ack(t, q, "e2")
		takes(t, claim(t, late, "e3"))
		takes(t, claim(t, q, "e4"))
		if err := late.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
