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
	// lookEvery is how often the server is asked for its time, while there is something
	// to write: clocks drift apart slowly.
	lookEvery = time.Minute
	// restFor is the longest time between two attempts to write.
	restFor = 2 * time.Second
)

// publisher is what is known of the stream while it is written to.
type publisher struct {
	*Writer
	ready  bool      // the stream was there
	looked time.Time // when the server was asked for its time
	down   bool      // somebody was told that it takes nothing
}

// publish publishes messages, one after the other, until there will be no more.
func (w *Writer) publish() {
	defer close(w.ended)
	p := &publisher{Writer: w}
	p.prepare()
	for b := range w.batches {
		b.dropped = w.lost.Swap(0)
		cause := p.store(b)
		w.taken.Add(-int64(b.lines))
		if cause != "" {
			w.lost.Add(b.dropped) // nobody was told
			w.drop(cause, b.lines)
			continue
		}
		w.o.Written(b.lines)
		w.keep(b)
	}
}

// prepare opens the stream before there is anything to write, so that it can be read.
// What is in the way of that is met again when there is.
func (p *publisher) prepare() {
	ctx, cancel := context.WithTimeout(p.life, kv.TryFor)
	defer cancel()
	if err := p.look(ctx); err != nil {
		p.begun(err)
	}
}

// store publishes a message until the stream has it, and returns why it never will.
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

// try publishes a message once. A repeat has the same id, so that a message whose
// acknowledgement was lost is not there twice.
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

// look opens the stream, and hears what time it is there. Only the first time it has the stream keep to
// this broker's limits: several that keep saying theirs would undo each other's for ever.
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

// begun says once that nothing can be written.
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

// codeTooLarge is the server's code of a message that is larger than the stream takes.
const codeTooLarge jetstream.ErrorCode = 10054

// tooLarge reports whether the stream will never have what it refused so.
func tooLarge(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == codeTooLarge || errors.Is(err, nats.ErrMaxPayload)
}
