package queue_test

import (
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

func TestAProducerOfAnyNameIsRemembered(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		it := item(1, func(it *schema.Item) { it.Producer = "u-1" })
		enqueue(t, q, it)
		claim(t, q, "e1")
		ack(t, q, "e1")
		<-time.After(10 * time.Minute)
		if r := enqueue(t, q, it); !r.Duplicate || r.State != schema.Delivered {
			t.Errorf("%+v", r)
		}
	})
}
