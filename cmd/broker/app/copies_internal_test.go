package app

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/bus/state/queue"
)

// The metric must have exactly the streams that a broker makes.
func TestEveryStreamHasItsCopiesReported(t *testing.T) {
	t.Parallel()
	b, err := New(t.Context(), Options{Data: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	defer func() { must(t, b.Close(t.Context())) }()
	nc, err := b.Connect(t.Context(), bus.Options{Name: "test"})
	must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	must(t, err)
	c := newCopies(prometheus.NewRegistry(), streams(true))
	c.look(t.Context(), js)
	seen := map[string]kv.Copies{}
	for _, s := range c.all {
		seen[s.stream] = s.last
	}
	names := js.StreamNames(t.Context())
	for name := range names.Name() {
		if seen[name] != (kv.Copies{Whole: 1}) {
			t.Errorf("%s: %+v", name, seen[name])
		}
	}
	must(t, names.Err())
	if none := seen["KV_"+state.KeyBucket]; none != (kv.Copies{}) {
		t.Errorf("clients need no credentials, and there is a stream of brokers' keys: %+v", none)
	}
	must(t, js.DeleteStream(t.Context(), "KV_"+queue.CursorBucket))
	if c.look(t.Context(), js); c.of("KV_"+queue.CursorBucket).last != (kv.Copies{Unheard: 1}) {
		t.Errorf("a deleted stream: %+v", c.of("KV_"+queue.CursorBucket).last)
	}
	nc.Close() // no leader can be asked
	s := c.all[0]
	s.last = kv.Copies{Whole: 2, Behind: 1}
	if c.look(t.Context(), js); s.last != (kv.Copies{Unheard: 3}) {
		t.Errorf("without an answer: %+v", s.last)
	}
}

// of returns the state of a stream.
func (c *copies) of(stream string) *copied {
	return c.all[slices.IndexFunc(c.all, func(s *copied) bool { return s.stream == stream })]
}
