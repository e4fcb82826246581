package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// controlTry is the timeout of a control request that is sent once.
	controlTry = 5 * time.Second
	// controlAnother is how long the first broker may take before a request that may be
	// served twice is sent to another one. Most requests with much work take less.
	controlAnother = 500 * time.Millisecond
	// A refused request is repeated after a pause, until patience is over.
	controlPause     = 25 * time.Millisecond
	controlPauseMost = time.Second
	controlPatience  = 10 * time.Second
)

var errNoVerdict = errors.New("no fabric has answered yet, so there is nothing to acknowledge; ask first")

// controlTarget is the verb and the agent of a control request.
type controlTarget struct {
	verb, agent string
	// another is how long a broker may take before another one is asked; 0: no other one
	// is.
	another time.Duration
}

// control makes a control request about an agent and decodes the answer. A refusal of the
// fabric is a [schema.ControlError].
func (c *Client) control(ctx context.Context, what controlTarget, request, answer any) error {
	subject, err := bus.ControlSubject(what.verb, what.agent)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	data, err := schema.Marshal(request)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	ctx, heeded := c.withDenial(ctx, subject)
	defer heeded()
	m, err := bus.Request(ctx, c.nc, &nats.Msg{Subject: subject, Data: data}, what.another)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), ErrDenied):
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: %w", ErrUnanswered, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if err := bus.Refusal(m); err != nil {
		return err
	}
	if answer == nil {
		return nil
	}
	if err := schema.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("%w: the answer to %s cannot be read: %w", ErrUnanswered, what.verb, err)
	}
	return nil
}

// isTemporary reports whether a request with this error may be repeated.
func isTemporary(err error) bool {
	if e, ok := errors.AsType[*schema.ControlError](err); ok {
		switch e.Code {
		case schema.CodeBadRequest, schema.CodeNotFound, schema.CodeConflict, schema.CodeTooOld:
			return false
		}
		return true
	}
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnanswered)
}

// controlRetrying is control for requests that may be served twice. It repeats them until
// they are answered or patience is over.
func (c *Client) controlRetrying(ctx context.Context, what controlTarget, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, controlPatience)
	defer cancel()
	for wait := controlPause; ; wait = min(2*wait, controlPauseMost) {
		err := c.control(ctx, what, request, answer)
		if err == nil || !isTemporary(err) || !c.sleep(ctx, jitter(wait)) {
			return err
		}
	}
}

// sleep waits, and reports whether the client and ctx are still alive afterwards.
func (c *Client) sleep(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-c.closed:
	case <-ctx.Done():
	}
	return false
}

// jitter returns d, changed by up to a quarter, so that clients do not act at the same
// instant.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1) // spreads load; predictability does no harm
}
