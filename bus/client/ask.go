package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// attempts is how often one event is asked: once more after a loss.
	attempts = 2
	// silence is how long neither an answer nor a beat may come.
	silence = schema.Missed * schema.BeatEvery
	// nobody is how often a call looks again when no aggregator is there, and
	// patience how long it does, also for a connection: a restart takes less,
	// and an agent should not wait for its whole deadline to hear that nobody judges.
	nobody   = 25 * time.Millisecond
	patience = 5 * time.Second
)

// ask is one event on its way to a verdict.
type ask struct {
	c       *Client
	routing schema.Routing
	subject string
	token   string
	body    []byte
	answers chan *nats.Msg
	attempt int
}

// wait asks, and asks once more when the one who was asked seems lost. Before
// that it waits while nobody is there to be asked at all.
func (a *ask) wait(ctx context.Context) (*schema.Verdict, error) {
	reach, cancel := context.WithTimeoutCause(ctx, patience, errNobody)
	defer cancel()
	for {
		lost, err := a.send(ctx, reach)
		if errors.Is(err, errUnsent) && pause(reach, nobody) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m, err := a.listen(ctx, lost)
		switch {
		case err == nil:
			return a.verdict(m)
		case errors.Is(err, nats.ErrNoResponders):
			a.attempt-- // nobody has it: this was no attempt
			if !pause(reach, nobody) {
				return nil, fmt.Errorf("%w: no aggregator listens", ErrUnreachable)
			}
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %w", ErrUnanswered, context.Cause(ctx))
		case a.attempt >= attempts:
			return nil, fmt.Errorf("%w: asked %d times: %w", ErrUnanswered, a.attempt, err)
		default:
			cancel()
			reach, cancel = context.WithTimeoutCause(ctx, patience, errNobody)
			defer cancel()
		}
	}
}

// send asks once, as soon as there is a connection, and returns what closes
// when that connection is lost. It waits for one only as long as reach lasts.
func (a *ask) send(ctx, reach context.Context) (lost chan struct{}, err error) {
	for lost == nil {
		a.c.mu.Lock()
		connected, current := a.c.connected, a.c.lost
		a.c.mu.Unlock()
		if isClosed(connected) {
			lost = current
			break
		}
		select {
		case <-connected:
		case <-reach.Done():
			return nil, fmt.Errorf("%w: not connected: %w", ErrUnreachable, context.Cause(reach))
		}
	}
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	if left <= 0 {
		return nil, fmt.Errorf("%w: %w", ErrUnanswered, context.DeadlineExceeded)
	}
	m := bus.EventMsg(a.subject, a.routing, a.attempt+1, left-schema.Margin(left), nil, a.body)
	m.Reply = a.c.inbox + a.token
	if err := a.c.nc.PublishMsg(m); err != nil {
		return nil, fmt.Errorf("%w: %w: %w", ErrUnreachable, errUnsent, err)
	}
	a.attempt++
	return lost, nil
}

var (
	errSilent       = errors.New("neither an answer nor a sign of life came")
	errDisconnected = errors.New("the connection was lost")
	errUnsent       = errors.New("the event could not be sent")
	errNobody       = errors.New("nobody was there to be asked")
)

// listen waits for the answer, as long as signs of life come.
func (a *ask) listen(ctx context.Context, lost chan struct{}) (*nats.Msg, error) {
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for {
		select {
		case m := <-a.answers:
			switch {
			case len(m.Data) > 0:
				return m, nil
			case m.Header.Get("Status") == "503":
				return nil, nats.ErrNoResponders
			}
			quiet.Reset(silence)
		case <-quiet.C:
			return nil, errSilent
		case <-lost:
			return nil, errDisconnected
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// verdict decodes the answer. When the event was asked twice and both answers
// are here, a deny wins.
func (a *ask) verdict(m *nats.Msg) (*schema.Verdict, error) {
	v, err := decode(m)
	for a.attempt > 1 && (err != nil || !a.routing.Event.Blocks(v.Decision)) {
		select {
		case m := <-a.answers:
			if len(m.Data) == 0 {
				continue
			}
			if other, otherErr := decode(m); otherErr == nil && (err != nil || a.routing.Event.Blocks(other.Decision)) {
				v, err = other, nil
			}
		default:
			return v, err
		}
	}
	return v, err
}

func decode(m *nats.Msg) (*schema.Verdict, error) {
	v := new(schema.Verdict)
	if err := schema.Unmarshal(m.Data, v); err != nil {
		return nil, fmt.Errorf("%w: the verdict can not be read: %w", ErrUnanswered, err)
	}
	if v.Decision == schema.None {
		return nil, fmt.Errorf("%w: the verdict has no decision", ErrUnanswered)
	}
	return v, nil
}

// pause waits a little and reports whether there is time left.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
