package app

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
)

// lookAtCopies is how often the leaders of streams are asked for their replicas.
const lookAtCopies = 5 * time.Second

// streams returns the streams of a fabric.
func streams(recorded bool) (all []string) {
	for _, bucket := range []string{state.ConfigBucket, state.KeyBucket, freezes.Bucket, queue.ItemBucket, queue.CursorBucket,
		rounds.Bucket, sessions.Bucket, sessions.AgentBucket, record.UnjudgedBucket} {
		all = append(all, "KV_"+bucket)
	}
	all = append(all, "OBJ_"+objects.Bucket, "OBJ_"+objects.Histories)
	if recorded {
		all = append(all, record.Name)
	}
	return all
}

// copies reports how many servers store each stream. A stream with fewer copies than it should
// have works, but losing one more server may stop it.
type copies struct {
	gauge *prometheus.GaugeVec // stream, state
	all   []*copied
}

// A copied is a stream with the last known state of its copies.
type copied struct {
	stream string
	last   kv.Copies
}

func newCopies(reg prometheus.Registerer, streams []string) *copies {
	c := &copies{gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "hookfabric", Name: "stream_copies",
		Help: "Servers that store a stream, by state as the stream's leader reports it: whole, behind or unheard. Alert on behind and unheard."}, []string{"stream", "state"})}
	reg.MustRegister(c.gauge)
	for _, s := range streams {
		c.all = append(c.all, &copied{stream: s})
	}
	c.show()
	return c
}

func (c *copies) show() {
	for _, s := range c.all {
		c.gauge.WithLabelValues(s.stream, "whole").Set(float64(s.last.Whole))
		c.gauge.WithLabelValues(s.stream, "behind").Set(float64(s.last.Behind))
		c.gauge.WithLabelValues(s.stream, "unheard").Set(float64(s.last.Unheard))
	}
}

// look asks for all streams at once, because a stream without a leader costs a full timeout.
func (c *copies) look(ctx context.Context, js jetstream.JetStream) {
	var asked sync.WaitGroup
	for _, s := range c.all {
		asked.Go(func() {
			now, err := kv.CopiesOf(ctx, js, s.stream)
			if err != nil || now == (kv.Copies{}) { // there is no leader, or the stream is gone
				now = kv.Copies{Unheard: s.last.Whole + s.last.Behind + s.last.Unheard}
			}
			s.last = now
		})
	}
	asked.Wait()
	c.show()
}

// startWatchingCopies starts the check of copies, which runs until the broker stops.
func (b *Broker) startWatchingCopies(ctx context.Context) error {
	js, err := jetstream.New(b.work)
	if err != nil {
		return err
	}
	c := newCopies(b.reg, streams(b.record != nil))
	b.inBackground(ctx, "replica watch", func(ctx context.Context) {
		for {
			c.look(ctx, js)
			if kv.Rest(ctx, lookAtCopies) != nil {
				return
			}
		}
	})
	return nil
}
