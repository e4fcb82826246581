package record

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// batch is a message to publish.
type batch struct {
	data   []byte // its lines, compressed
	lines  int
	number uint64
	// dropped is the number of records that were dropped before it.
	dropped uint64
}

// message returns b as a NATS message.
func (b *batch) message(subject string) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: b.data, Header: nats.Header{
		schema.HeaderNumber: {strconv.FormatUint(b.number, 10)}, schema.HeaderEncoding: {schema.SnappyFramed},
	}}
	if b.dropped > 0 {
		m.Header.Set(schema.HeaderDropped, strconv.FormatUint(b.dropped, 10))
	}
	return m
}

// A Batch is a message with records, as a reader gets it.
type Batch struct {
	// Broker wrote it. Number counts its messages, from 1.
	Broker string
	Number uint64
	// Dropped is how many records the broker dropped before this message.
	Dropped uint64
	// Sequence is the message's sequence in the stream, Stored the server's time of the write.
	Sequence uint64
	Stored   time.Time
	// Gone is how many messages before this one were removed before they were read, because of their age or
	// the size of the stream.
	Gone uint64
	// Lines are the records as JSON.
	Lines [][]byte
}

// parse decodes a message of the stream.
func parse(m jetstream.Msg) (*Batch, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, fmt.Errorf("a message of the stream %s says nothing of itself: %w", Name, err)
	}
	b := &Batch{Sequence: meta.Sequence.Stream, Stored: meta.Timestamp}
	if b.Broker, err = bus.ParseRecordSubject(m.Subject()); err != nil {
		return nil, err
	}
	if b.Number, err = strconv.ParseUint(m.Headers().Get(schema.HeaderNumber), 10, 64); err != nil {
		return nil, fmt.Errorf("message %d of the stream %s has no number: %w", b.Sequence, Name, err)
	}
	if v := m.Headers().Get(schema.HeaderDropped); v != "" {
		if b.Dropped, err = strconv.ParseUint(v, 10, 64); err != nil {
			return nil, fmt.Errorf("message %d of the stream %s: %s: %w", b.Sequence, Name, schema.HeaderDropped, err)
		}
	}
	lines, err := unpacked(m.Headers().Get(schema.HeaderEncoding), m.Data())
	if err != nil {
		return nil, fmt.Errorf("message %d of the stream %s: %w", b.Sequence, Name, err)
	}
	for line := range bytes.Lines(lines) {
		b.Lines = append(b.Lines, bytes.TrimSuffix(line, []byte("\n")))
	}
	return b, nil
}
