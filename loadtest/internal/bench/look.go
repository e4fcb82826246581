package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

// flushed is the longest time until the broker writes a record.
const flushed = 200 * time.Millisecond

// The checks of the record.
const (
	complete = "each call is in the record once"
	bounded  = "the stream stays within its size limit"
	newest   = "the stream keeps the newest records, without a gap"
	silent   = "the broker dropped no record"
	nothing  = "a broker with --record off keeps no record"
)

// look reads the record of a broker and compares it with the calls.
func (s recorder) look(ctx context.Context, d *report.Document) error {
	nc, err := bus.Connect(ctx, bus.Options{URL: s.URL(), Name: "loadtest record"})
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("using JetStream: %w", err)
	}
	if s.name == off {
		_, err := record.Look(ctx, js)
		c := d.Check(nothing)
		if c.Seen++; !errors.Is(err, record.ErrNone) {
			c.Fail(fmt.Sprintf("%s: %v", s.name, err))
		}
		return nil
	}
	seen, dropped, numbers := map[string]int{}, uint64(0), []uint64{}
	err = record.Read(ctx, js, record.Span{}, func(b *record.Batch) error {
		dropped += b.Dropped
		numbers = append(numbers, b.Number)
		for _, line := range b.Lines {
			var rec schema.Record
			if err := schema.Unmarshal(line, &rec); err != nil {
				return fmt.Errorf("a record cannot be read: %w", err)
			}
			seen[rec.EventID]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.judge(d, seen, dropped)
	return s.size(ctx, d, js, numbers)
}

// judge compares the records of a broker with its calls.
func (s recorder) judge(d *report.Document, seen map[string]int, dropped uint64) {
	c := d.Check(silent)
	if c.Seen++; dropped > 0 {
		c.Fail(fmt.Sprintf("%s: %d records", s.name, dropped))
	}
	if s.bytes != "" {
		return // the limit has removed most of them
	}
	c = d.Check(complete)
	c.Seen += s.asked
	if int64(len(seen)) != s.asked {
		c.Fail(fmt.Sprintf("%s: %d calls, but %d in the record", s.name, s.asked, len(seen)))
	}
	for id, n := range seen {
		if n != 1 {
			c.Fail(fmt.Sprintf("%s: %s is recorded %d times", s.name, id, n))
		}
	}
}

// size checks that the stream of a broker is within its limit and holds the newest records.
func (s recorder) size(ctx context.Context, d *report.Document, js jetstream.JetStream, numbers []uint64) error {
	stream, err := js.Stream(ctx, record.Name)
	if err != nil {
		return fmt.Errorf("asking for the stream: %w", err)
	}
	is := stream.CachedInfo()
	limit := uint64(record.DefaultBytes)
	if s.bytes != "" {
		limit = kept
	}
	c := d.Check(bounded)
	if c.Seen++; is.State.Bytes > limit {
		c.Fail(fmt.Sprintf("%s: %d bytes", s.name, is.State.Bytes))
	}
	c = d.Check(newest)
	if c.Seen++; len(numbers) == 0 || int(numbers[len(numbers)-1]-numbers[0]) != len(numbers)-1 || is.State.LastSeq != numbers[len(numbers)-1] {
		c.Fail(fmt.Sprintf("%s: %d messages, the last of %d", s.name, len(numbers), is.State.LastSeq))
	}
	return nil
}
