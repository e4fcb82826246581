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

// TestEveryStreamIsLookedAfter: what a broker makes is what it tells the copies of.
func TestEveryStreamIsLookedAfter(t *testing.T) {
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
		t.Errorf("nobody has to say who they are, and the keys of brokers are kept: %+v", none)
	}
	must(t, js.DeleteStream(t.Context(), "KV_"+queue.CursorBucket))
	if c.look(t.Context(), js); c.of("KV_"+queue.CursorBucket).last != (kv.Copies{Unheard: 1}) {
		t.Errorf("it is gone: %+v", c.of("KV_"+queue.CursorBucket).last)
	}
	nc.Close() // nobody can be asked any more
	s := c.all[0]
	s.last = kv.Copies{Whole: 2, Behind: 1}
	if c.look(t.Context(), js); s.last != (kv.Copies{Unheard: 3}) {
		t.Errorf("nobody answers: %+v", s.last)
	}
}

// of is what is known of a stream.
func (c *copies) of(stream string) *copied {
	return c.all[slices.IndexFunc(c.all, func(s *copied) bool { return s.stream == stream })]
}
