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
	// Last is the revision that the key must still be at; 0: it must never have
	// been written, or its marker be gone.
	Last uint64
	// Blind writes whatever the key's revision is.
	Blind bool
	// TTL is how long the revision lives; 0: as long as the bucket says.
	TTL time.Duration
	// Purge writes a marker that ends the key, instead of a value.
	Purge bool
	// Replace takes all earlier revisions away, as Purge does.
	Replace bool
	// Header is added to the revision's.
	Header nats.Header
	// Within bounds the request; 0: [TryFor]. One that is shorter than [Patient] says
	// nothing of the bucket if it is not answered.
	Within time.Duration
}

// Write stores it and returns its revision. After an error that is not
// [Refused] it may have been stored all the same.
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
	b.stored.Note(err, began)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// conditions adds to m under which it may be stored, and for how long.
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
