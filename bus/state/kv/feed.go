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
	// heartbeat is the interval of a consumer's heartbeats, and silentFor how long a consumer may
	// be silent before it counts as gone.
	heartbeat = time.Second
	silentFor = 3 * heartbeat
)

// A feed is a consumer of all revisions of a bucket.
type feed struct {
	bucket *Bucket
	mirror *Mirror
	sub    *nats.Subscription
	name   string
	// connection is the client's number of reconnects when the feed was made.
	connection uint64
	// heard is the time of the last message, and broken whether a message was lost.
	heard  atomic.Pointer[time.Time]
	broken atomic.Bool
	next   uint64 // the expected consumer sequence; only the subscription uses it
}

// feed returns a feed that begins at a revision.
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
	// The consumer's flow control bounds the pending messages.
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

// receive passes the consumer's messages on, in order.
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

// control answers flow control messages.
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

// dead reports whether the consumer is gone, or a message was lost.
func (f *feed) dead(nc *nats.Conn) bool {
	return f == nil || f.broken.Load() || nc.Stats().Reconnects != f.connection || time.Since(*f.heard.Load()) > silentFor
}

// close ends the feed. Otherwise the server would remove the consumer after a while.
func (f *feed) close() {
	_ = f.sub.Unsubscribe()
	if f.name != "" {
		_ = f.bucket.js.Conn().Publish(f.bucket.api+"CONSUMER.DELETE."+f.bucket.stream+"."+f.name, nil)
	}
}
