package kv

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// heartbeat is how often a consumer with nothing to say says so, and
	// silentFor how long one is believed to be there that says nothing.
	heartbeat = time.Second
	silentFor = 3 * heartbeat
)

// A feed is a consumer of all that is stored in a bucket.
type feed struct {
	bucket *Bucket
	mirror *Mirror
	sub    *nats.Subscription
	name   string
	// connection counts how often the client had reconnected when it was made.
	connection uint64
	// heard is when it last said something, and broken whether something between
	// was lost.
	heard  atomic.Pointer[time.Time]
	broken atomic.Bool
	next   uint64 // the consumer's next sequence; only the subscription looks at it
}

// feed makes one that begins at the revision.
func (b *Bucket) feed(ctx context.Context, from uint64, m *Mirror) (*feed, error) {
	nc := b.js.Conn()
	f := &feed{bucket: b, mirror: m, next: 1, connection: nc.Stats().Reconnects}
	f.touch()
	inbox := nc.NewInbox()
	sub, err := nc.Subscribe(inbox, f.receive)
	if err != nil {
		return nil, err
	}
	f.sub = sub
	// What comes is bounded by the consumer's flow control.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, TryFor)
	defer cancel()
	consumer, err := b.js.CreatePushConsumer(ctx, b.stream, jetstream.ConsumerConfig{
		DeliverSubject: inbox, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1,
		FlowControl: true, IdleHeartbeat: heartbeat, InactiveThreshold: silentFor,
	})
	if err != nil {
		f.close()
		return nil, err
	}
	f.name = consumer.CachedInfo().Name
	return f, nil
}

// receive takes over what the consumer says, in its order.
func (f *feed) receive(msg *nats.Msg) {
	f.touch()
	if msg.Header.Get("Status") != "" {
		f.control(msg)
		return
	}
	meta, err := msg.Metadata()
	if err != nil || f.broken.Load() {
		return
	}
	if meta.Sequence.Consumer != f.next {
		f.broken.Store(true)
		f.mirror.poke()
		return
	}
	f.next++
	f.mirror.apply(Entry{
		Key: strings.TrimPrefix(msg.Subject, f.bucket.prefix), Value: msg.Data, Revision: meta.Sequence.Stream,
		Created: meta.Timestamp, Kind: kind(msg.Header), Header: msg.Header,
	})
}

// control answers the consumer's question whether it may go on.
func (f *feed) control(msg *nats.Msg) {
	if msg.Reply != "" {
		_ = f.bucket.js.Conn().Publish(msg.Reply, nil)
	} else if stalled := msg.Header.Get("Nats-Consumer-Stalled"); stalled != "" {
		_ = f.bucket.js.Conn().Publish(stalled, nil)
	}
}

func (f *feed) touch() {
	now := time.Now()
	f.heard.Store(&now)
}

// dead reports whether the consumer is gone, or lost something.
func (f *feed) dead(nc *nats.Conn) bool {
	return f == nil || f.broken.Load() || nc.Stats().Reconnects != f.connection || time.Since(*f.heard.Load()) > silentFor
}

// close ends the feed. The server would notice by itself that nobody listens,
// after a while.
func (f *feed) close() {
	_ = f.sub.Unsubscribe()
	if f.name != "" {
		_ = f.bucket.js.Conn().Publish(f.bucket.api+"CONSUMER.DELETE."+f.bucket.stream+"."+f.name, nil)
	}
}
