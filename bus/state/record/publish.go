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

const (
	// lookEvery is the interval of requests for the server's time during writes, because clocks drift slowly.
	lookEvery = time.Minute
	// restFor bounds the time between two attempts.
	restFor = 2 * time.Second
)

// publisher is the state of writing to the stream.
type publisher struct {
	*Writer
	ready  bool      // the stream existed at the last write
	looked time.Time // the last request for the server's time
	down   bool      // the log has a failure
}

// publish publishes messages in order, until the channel is closed.
func (w *Writer) publish() {
	defer close(w.ended)
	p := &publisher{Writer: w}
	p.prepare()
	for b := range w.batches {
		b.dropped = w.lost.Swap(0)
		cause := p.store(b)
		w.taken.Add(-int64(b.lines))
		if cause != "" {
			w.lost.Add(b.dropped) // the message with the count was not stored
			w.drop(cause, b.lines)
			continue
		}
		w.o.Written(b.lines)
		w.recycle(b)
	}
}

// prepare opens the stream before the first write, so that it can be read. Errors are met again at the first write.
func (p *publisher) prepare() {
	ctx, cancel := context.WithTimeout(p.life, kv.TryFor)
	defer cancel()
	if err := p.look(ctx); err != nil {
		p.begun(err)
	}
}

// store publishes a message until it is stored, or returns why it never will be.
func (p *publisher) store(b *batch) Cause {
	for i := 0; ; i++ {
		err := p.try(b)
		switch {
		case err == nil:
			p.over()
			return ""
		case tooLarge(err):
			p.o.Logger.Error("the stream refuses records; they are lost", "records", b.lines, "bytes", len(b.data), "error", err)
			return Refused
		case p.life.Err() != nil:
			return Stopped
		}
		p.begun(err)
		if kv.Pause(p.life, min(restFor, 50*time.Millisecond<<min(i, 10))) != nil {
			return Stopped
		}
	}
}

// try publishes a message once. Each attempt has the same id, so a message with a lost acknowledgement is not duplicated.
func (p *publisher) try(b *batch) error {
	ctx, cancel := context.WithTimeout(p.life, kv.TryFor)
	defer cancel()
	if !p.ready || time.Since(p.looked) > lookEvery {
		if err := p.look(ctx); err != nil {
			return err
		}
	}
	id := fmt.Sprintf("%s.%d", p.o.Broker, b.number)
	_, err := p.js.PublishMsg(ctx, b.message(p.subject), jetstream.WithMsgID(id), jetstream.WithExpectStream(Name), jetstream.WithRetryAttempts(0))
	p.ready = err == nil
	return err
}

// look opens the stream and gets the server's time. Only the first call applies this broker's limits, so that brokers with
// different limits do not keep changing them.
func (p *publisher) look(ctx context.Context) error {
	sent := time.Now()
	is, err := open(ctx, p.js, p.o.Limits, p.looked.IsZero())
	if err != nil {
		return err
	}
	if want := p.o.Limits.Bytes; want > 0 && is.Config.MaxBytes < want && p.looked.IsZero() {
		p.o.Logger.Warn("the server has less room than --record-bytes", "bytes", is.Config.MaxBytes, "wanted", want)
	}
	p.clock.Heard(is.TimeStamp, sent, time.Since(sent))
	p.ready, p.looked = true, time.Now()
	return nil
}

// begun logs a failure once.
func (p *publisher) begun(err error) {
	if !p.down {
		p.down = true
		p.o.Logger.Warn("records cannot be written now; they wait, and the broker drops records when too many wait", "error", err)
	}
}

func (p *publisher) over() {
	if p.down {
		p.down = false
		p.o.Logger.Info("records are written again")
	}
}

// codeTooLarge is the server's error code of a message that is too large for the stream.
const codeTooLarge jetstream.ErrorCode = 10054

// tooLarge reports whether a message is too large for the stream.
func tooLarge(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == codeTooLarge || errors.Is(err, nats.ErrMaxPayload)
}
