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
	// controlTry is how long a control request that is made once waits for its answer.
	controlTry = 5 * time.Second
	// controlAnother is how long the first broker that is asked may take before another
	// one is asked what may be served twice: longer than most take that have much to do.
	controlAnother = 500 * time.Millisecond
	// What was refused is asked again after a pause, until patience is over.
	controlPause     = 25 * time.Millisecond
	controlPauseMost = time.Second
	controlPatience  = 10 * time.Second
)

var errNoVerdict = errors.New("no fabric has answered yet, so there is nothing to acknowledge; ask first")

// about is what a control request is about.
type about struct {
	verb, agent string
	// another is how long a broker may take before another one is asked; 0: one is.
	another time.Duration
}

// control makes a control request about an agent and reads the answer. What
// the fabric refuses is a [schema.ControlError].
func (c *Client) control(ctx context.Context, what about, request, answer any) error {
	subject, err := bus.ControlSubject(what.verb, what.agent)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	data, err := schema.Marshal(request)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	ctx, heeded := c.heeding(ctx, subject)
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

// passing reports whether a request that failed so may be repeated.
func passing(err error) bool {
	if e, ok := errors.AsType[*schema.ControlError](err); ok {
		switch e.Code {
		case schema.CodeBadRequest, schema.CodeNotFound, schema.CodeConflict, schema.CodeTooOld:
			return false
		}
		return true
	}
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnanswered)
}

// patiently is control until it is answered, or it has failed for long enough:
// requests that may be served twice are repeated.
func (c *Client) patiently(ctx context.Context, what about, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, controlPatience)
	defer cancel()
	for wait := controlPause; ; wait = min(2*wait, controlPauseMost) {
		err := c.control(ctx, what, request, answer)
		if err == nil || !passing(err) || !c.rest(ctx, jitter(wait)) {
			return err
		}
	}
}

// rest waits and reports whether there is still time after that.
func (c *Client) rest(ctx context.Context, wait time.Duration) bool {
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

// jitter is d, give or take a quarter, so that many do not come at one instant.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1) // it spreads load and hides nothing
}
