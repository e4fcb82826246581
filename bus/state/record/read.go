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

// ErrNone says that the fabric keeps no record.
var ErrNone = errors.New("this fabric has no record of verdicts")

const (
	// ahead is how many messages are fetched before they are looked at.
	ahead = 32
	// idleFor is how long reading waits before it looks whether there is more to come.
	idleFor = 2 * time.Second
	// goneAfter is when the server forgets a reading that nobody goes on with.
	goneAfter = time.Minute
)

// A State says what the stream holds.
type State struct {
	// Now is the server's time.
	Now time.Time
	// First is when the oldest message was stored that is still there; zero: there is none.
	First time.Time
	// Lost: there were older ones, which are gone.
	Lost bool
	// Last is the sequence of the newest message.
	Last uint64
}

// Look asks what there is to read. For as long as ctx lasts it waits for servers that
// have no leader.
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

// A Span is what to read.
type Span struct {
	// Since is from when on messages were stored, by the server's clock; zero: all.
	Since time.Time
	// Follow goes on with what comes. Otherwise reading ends where the stream ended
	// when it began.
	Follow bool
	// CaughtUp is called once, when everything was read that was there at the
	// beginning; nil: nobody is told.
	CaughtUp func() error
}

// Read calls each with every message in its order, once, until ctx ends or there is
// nothing more to read, or each returns an error, which it returns. A lost connection
// is waited for.
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

// reader is one reading.
type reader struct {
	js   jetstream.JetStream
	span Span
	each func(*Batch) error
	// end is the last message of the history, last the one that was read last.
	end, last uint64
	complete  bool // everything up to end was read
	// numbers are the last messages of each broker.
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

// take takes one message, and reports whether it was the last to be read.
func (r *reader) take(m jetstream.Msg) (done bool, err error) {
	b, err := parse(m)
	if err != nil {
		return true, err
	}
	if r.last > 0 && b.Sequence > r.last+1 {
		b.Gone = b.Sequence - r.last - 1
	}
	r.last = b.Sequence
	// A message that was published again when its id was forgotten.
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

// idle looks whether anything is left to be read when nothing came for a while: what
// was there at the beginning may be gone meanwhile.
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
		return false, nil // the connection is lost, or nobody leads: it is waited for
	case st.First.IsZero():
		return r.caughtUp()
	}
	return false, nil
}

// caughtUp tells that the history was read, and reports whether that is all.
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
