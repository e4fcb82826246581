package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// ErrNone means that the fabric has no record.
var ErrNone = errors.New("this fabric has no record of verdicts")

const (
	// ahead is how many messages are fetched in advance.
	ahead = 32
	// idleFor is how long to wait for a message before checking whether there are more.
	idleFor = 2 * time.Second
	// goneAfter is when the server removes an abandoned consumer.
	goneAfter = time.Minute
)

// A State describes the stream.
type State struct {
	// Now is the server's time.
	Now time.Time
	// First is the time of the oldest message; zero: the stream is empty.
	First time.Time
	// Lost: older messages were removed.
	Lost bool
	// Last is the sequence of the newest message.
	Last uint64
}

// Look returns the state of the stream. It waits until ctx ends for servers without a leader.
func Look(ctx context.Context, js jetstream.JetStream) (State, error) {
	s, err := kv.Patiently(ctx, "asking for the stream "+Name, kv.Passing, func(ctx context.Context) (jetstream.Stream, error) {
		return js.Stream(ctx, Name)
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return State{}, ErrNone
	}
	if err != nil {
		return State{}, err
	}
	is := s.CachedInfo()
	st := State{Now: is.TimeStamp, Lost: is.State.FirstSeq > 1, Last: is.State.LastSeq}
	if is.State.Msgs > 0 {
		st.First = is.State.FirstTime
	}
	return st, nil
}

// A Span describes what to read.
type Span struct {
	// Since is the earliest time of a message, by the server's clock; zero: all.
	Since time.Time
	// Follow continues with new messages. Without it, reading ends at the message that was the newest one at
	// the beginning.
	Follow bool
	// CaughtUp is called once, when that message was read; nil: no call.
	CaughtUp func() error
}

// Read calls each with every message once and in order, until ctx ends, there are no more messages, or each returns an error, which
// Read returns. It waits for a lost connection.
func Read(ctx context.Context, js jetstream.JetStream, span Span, each func(*Batch) error) error {
	st, err := Look(ctx, js)
	if err != nil {
		return err
	}
	cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy, InactiveThreshold: goneAfter}
	if !span.Since.IsZero() {
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &span.Since
	}
	consumer, err := js.OrderedConsumer(ctx, Name, cfg)
	if err != nil {
		return fmt.Errorf("reading the stream %s: %w", Name, err)
	}
	r := &reader{js: js, span: span, each: each, end: st.Last, numbers: make(map[string]uint64)}
	if is := consumer.CachedInfo(); is == nil || is.NumPending == 0 {
		if done, err := r.caughtUp(); done || err != nil {
			return err
		}
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(ahead))
	if err != nil {
		return fmt.Errorf("reading the stream %s: %w", Name, err)
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	return r.run(ctx, messages)
}

// reader is one call of Read.
type reader struct {
	js   jetstream.JetStream
	span Span
	each func(*Batch) error
	// end is the last message of the history, last the last message that was read.
	end, last uint64
	complete  bool // all messages up to end were read
	// numbers are the last numbers of each broker.
	numbers map[string]uint64
}

func (r *reader) run(ctx context.Context, messages jetstream.MessagesContext) error {
	for {
		wait, cancel := context.WithTimeout(ctx, idleFor)
		m, err := messages.Next(jetstream.NextContext(wait))
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
			if done, err := r.idle(ctx); done || err != nil {
				return err
			}
			continue
		case err != nil:
			return fmt.Errorf("reading the stream %s: %w", Name, err)
		}
		if done, err := r.take(m); done || err != nil {
			return err
		}
	}
}

// take handles one message, and reports whether it is the last one.
func (r *reader) take(m jetstream.Msg) (done bool, err error) {
	b, err := parse(m)
	if err != nil {
		return true, err
	}
	if r.last > 0 && b.Sequence > r.last+1 {
		b.Gone = b.Sequence - r.last - 1
	}
	r.last = b.Sequence
	// Skip a message that was published again after its id was forgotten.
	if b.Number > r.numbers[b.Broker] {
		r.numbers[b.Broker] = b.Number
		if err := r.each(b); err != nil {
			return true, err
		}
	}
	if b.Sequence >= r.end {
		return r.caughtUp()
	}
	return false, nil
}

// idle checks whether unread messages are left, because they may have been removed.
func (r *reader) idle(ctx context.Context) (done bool, err error) {
	if r.complete {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, kv.TryFor)
	defer cancel()
	st, err := Look(ctx, r.js)
	switch {
	case errors.Is(err, ErrNone):
		return true, err
	case err != nil:
		return false, nil // wait for the connection, or for a leader
	case st.First.IsZero():
		return r.caughtUp()
	}
	return false, nil
}

// caughtUp reports the end of the history, and whether reading ends with it.
func (r *reader) caughtUp() (done bool, err error) {
	if r.complete {
		return false, nil
	}
	r.complete = true
	if r.span.CaughtUp != nil {
		err = r.span.CaughtUp()
	}
	return !r.span.Follow, err
}
