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
	// attempts is how often one event is sent: a second time after a loss.
	attempts = 2
	// retryEvery is the retry interval of a call when no aggregator listens. patience is
	// how long it retries, also for a connection. A restart takes less, and an agent
	// should not wait for its whole deadline to learn that no broker judges.
	retryEvery = 25 * time.Millisecond
	patience   = 5 * time.Second
)

// ask is one event until it has a verdict.
type ask struct {
	*replyInbox
	c       *Client
	routing schema.Routing
	event   schema.Event
	subject string
	body    []byte
	acks    []string // events that the call acknowledges
	// workspaces is the folder for other agents' workspaces; empty: they are not
	// unpacked.
	workspaces string
	// history returns the conversation, for hooks that need it; nil: no conversation.
	history func() []schema.Message
	// parts are the parts of the conversation that the event names.
	parts   []schema.Object
	attempt int
	until   time.Time // the caller's deadline
	end     time.Time // the deadline of this call, which leaves time to return
	reach   time.Time // until when it looks for an aggregator
	missed  int       // beats that were due since the last one
	// lost is closed when the connection of the last attempt is lost.
	lost chan struct{}
}

var (
	errSilent       = errors.New("neither an answer nor a sign of life came")
	errDisconnected = errors.New("the connection was lost")
	errUnsent       = errors.New("the event could not be sent")
	errNoAggregator = errors.New("no aggregator listens")
	errUnconnected  = errors.New("there is no connection")
	errClosed       = errors.New("the client was closed")
)

// wait asks, and asks a second time if the first attempt seems lost. Before that it waits
// while no aggregator listens.
func (a *ask) wait(ctx context.Context) (*schema.Verdict, error) {
	a.reach = time.Now().Add(patience)
	alone := false // every reply so far was that no aggregator listens
	for {
		m, err := a.attemptOnce(ctx)
		switch {
		case err == nil:
			return a.verdict(m)
		case alone && errors.Is(err, context.DeadlineExceeded):
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, errNoAggregator)
		case errors.Is(err, errUnsent), errors.Is(err, errNoAggregator):
			if alone = errors.Is(err, errNoAggregator); alone && time.Until(a.reach) < patience-leaveAfter {
				a.c.leaveServer(a.lost, err)
			}
			if !a.pause(ctx) {
				return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
			}
		case !errors.Is(err, errSilent) && !errors.Is(err, errDisconnected):
			return nil, err
		case a.attempt >= attempts:
			if errors.Is(err, errSilent) {
				a.c.leaveServer(a.lost, err)
			}
			return nil, fmt.Errorf("%w: asked %d times: %w", ErrUnanswered, a.attempt, err)
		default:
			alone = false
			a.reach = time.Now().Add(patience)
		}
	}
}

// attemptOnce sends the event and waits for the result.
func (a *ask) attemptOnce(ctx context.Context) (*nats.Msg, error) {
	lost, err := a.connected(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if why := a.c.refusedBy(); why != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, why)
	}
	a.lost = lost
	if err := a.send(); err != nil {
		return nil, err
	}
	m, err := a.listen(ctx, lost)
	switch {
	case err == nil && len(m.Data) == 0:
		a.attempt-- // no aggregator received it, so it does not count as an attempt
		return nil, errNoAggregator
	case errors.Is(err, ErrDenied) && a.c.refusedBy() != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	case errors.Is(err, ErrDenied):
		return nil, fmt.Errorf("%w: the agent is called %q here, but the credentials%s are for another name; use that name (--agent, HOOKFABRIC_AGENT): %w",
			ErrUnreachable, a.routing.Agent, a.c.creds, err)
	case errors.Is(err, errClosed):
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	case err != nil && !errors.Is(err, errSilent) && !errors.Is(err, errDisconnected):
		return nil, fmt.Errorf("%w: %w", ErrUnanswered, err)
	}
	return m, err
}

// connected waits for a connection and returns the channel that closes when it is lost.
// It waits only as long as the call looks for an aggregator.
func (a *ask) connected(ctx context.Context) (lost chan struct{}, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for {
		connected, lost, since := a.c.connection()
		if isClosed(connected) {
			return lost, nil
		}
		// After a long outage the call does not wait for the connection's return, but
		// makes one attempt to reconnect.
		end := since.Add(patience)
		if a.reach.Before(end) {
			end = a.reach
		}
		if a.end.Before(end) {
			end = a.end
		}
		if now := time.Now(); !end.After(now) && now.Before(a.end) && a.c.reconnectNow() {
			end = now.Add(min(reconnectFor, a.end.Sub(now)))
		}
		t := time.NewTimer(time.Until(end))
		select {
		case <-connected:
		case <-t.C:
			if err = errUnconnected; a.c.refusedBy() != nil {
				err = fmt.Errorf("%w: %w", errUnconnected, a.c.refusedBy())
			}
		case <-a.c.closed:
			err = errClosed
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		t.Stop()
		if err != nil {
			return nil, err
		}
	}
}

// send sends the event, with the time that is left now.
func (a *ask) send() error {
	left := time.Until(a.until)
	if left <= 0 {
		return fmt.Errorf("%w: %w", ErrUnanswered, context.DeadlineExceeded)
	}
	subject := a.subject
	if a.attempt > 0 {
		subject += bus.AgainSuffix
	}
	e := a.c.envelopes.Take()
	defer a.c.envelopes.Put(e)
	m := e.Event(subject, a.routing, a.attempt+1, left-schema.Margin(left), a.acks, a.body)
	m.Reply = a.replyInbox.reply
	err := a.c.out.Publish(m)
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %d bytes, and the server takes messages of at most %d", ErrTooLarge, len(a.body), a.c.nc.MaxPayload())
	case err != nil:
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	a.attempt++
	return nil
}

// listen waits for the answer, as long as beats arrive. An answer that has arrived
// precedes every reason to stop waiting.
func (a *ask) listen(ctx context.Context, lost chan struct{}) (*nats.Msg, error) {
	a.missed = 0
	due := a.next()
	silence := a.expect(due)
	defer a.silence.Stop()
	for {
		var why error
		select {
		case m := <-a.answers:
			return m, nil
		case <-a.beats:
			a.missed = 0
		case <-silence:
			why = a.silent(due)
		case why = <-a.denied:
		case <-lost:
			why = errDisconnected
		case <-a.c.closed:
			why = errClosed
		case <-ctx.Done():
			why = context.Cause(ctx)
		}
		if why != nil {
			select {
			case m := <-a.answers:
				return m, nil
			default:
				return nil, why
			}
		}
		due = a.next()
		silence = a.expect(due)
	}
}

// next returns when the next beat is due, counted from now.
func (a *ask) next() time.Time {
	if due := time.Now().Add(schema.BeatEvery); due.Before(a.end) {
		return due
	}
	return a.end
}

// silent handles a beat that is overdue. It counts each beat separately. If this process
// was stopped for longer than a beat, counting starts again, because the silence was its
// own.
func (a *ask) silent(due time.Time) error {
	now := time.Now()
	switch {
	case !now.Before(a.end):
		return context.DeadlineExceeded
	case now.Sub(due) > schema.BeatEvery:
		a.missed = 0
		return nil
	}
	a.missed++
	if a.missed < schema.Missed {
		return nil
	}
	return errSilent
}

// verdict decodes the answer. If both attempts were answered, a deny wins.
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
		return nil, fmt.Errorf("%w: the verdict cannot be read: %w", ErrUnanswered, err)
	}
	if v.Decision == schema.None {
		return nil, fmt.Errorf("%w: the verdict has no decision", ErrUnanswered)
	}
	return v, nil
}

// pause waits a little and reports whether it may look for an aggregator again.
func (a *ask) pause(ctx context.Context) bool {
	alive := a.c.sleep(ctx, retryEvery)
	now := time.Now()
	return alive && now.Before(a.reach) && now.Before(a.end)
}
