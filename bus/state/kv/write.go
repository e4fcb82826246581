package kv

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Write is one new revision of a key.
type Write struct {
	Key   string
	Value []byte
	// Last is the revision that the key must have; 0: it was never written, or its marker has
	// lapsed.
	Last uint64
	// Blind ignores the key's revision.
	Blind bool
	// TTL is the lifetime of the revision; 0: that of the bucket.
	TTL time.Duration
	// Purge writes a marker that ends the key, without a value.
	Purge bool
	// Replace deletes all earlier revisions, as Purge does.
	Replace bool
	// Header is added to the headers of the revision.
	Header nats.Header
	// Within bounds the request; 0: [TryFor]. A timeout below [Patient] does not count as a failure
	// of the bucket.
	Within time.Duration
}

// Write stores w and returns its revision. After an error that is not [Refused] it may have been
// stored.
func (b *Bucket) Write(ctx context.Context, w Write) (uint64, error) {
	m := &nats.Msg{Subject: b.moved + b.prefix + w.Key, Data: w.Value}
	if len(w.Header) > 0 || w.Purge || w.Replace {
		m.Header = make(nats.Header, len(w.Header)+4)
		maps.Copy(m.Header, w.Header)
	}
	if w.Purge {
		m.Header[headerOp] = []string{opPurge}
	}
	if w.Purge || w.Replace {
		m.Header[jetstream.MsgRollup] = []string{jetstream.MsgRollupSubject}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(w.Within, TryFor))
	defer cancel()
	ack, err := b.js.PublishMsg(ctx, w.conditions(m))
	b.Note(err, began)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// conditions adds the headers for the expected revision and the TTL.
func (w *Write) conditions(m *nats.Msg) *nats.Msg {
	if m.Header == nil {
		m.Header = make(nats.Header, 2)
	}
	if !w.Blind {
		m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(w.Last, 10)}
	}
	if w.TTL > 0 {
		m.Header[jetstream.MsgTTLHeader] = []string{w.TTL.String()}
	}
	return m
}
