package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/bus"
)

// ErrDenied means that the client's credentials do not permit the request. Usually they are for
// an agent of another name. Errors of Ask wrap it together with [ErrUnreachable]. They wrap
// [bus.ErrRefused] if the server rejects the credentials or certificates. Neither is an outage,
// so a guard must not let a call pass because of it.
var ErrDenied = errors.New("the credentials do not permit this")

// A controlRequest is a control request in progress.
type controlRequest struct {
	subject string
	end     context.CancelCauseFunc
}

// refused records why the client cannot connect.
func (c *Client) refused(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal = why
}

// refusedBy returns why there is no connection, or none on which answers can arrive; nil:
// no reason is known.
func (c *Client) refusedBy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusal
}

// denied ends the requests that the bus does not permit, because they will not be
// answered.
func (c *Client) denied(err error) {
	of := func(subject string) bool { return strings.Contains(err.Error(), strconv.Quote(subject)) }
	why := fmt.Errorf("%w: %w", ErrDenied, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	deaf := of(c.inbox + "*")
	if deaf {
		c.refusal = fmt.Errorf("the credentials%s do not permit reading answers; make new ones with `broker creds add`: %w", c.creds, why)
		why = c.refusal
	}
	for _, a := range c.waiting {
		if deaf || of(a.subject) || of(a.subject+bus.AgainSuffix) {
			select {
			case a.denied <- why:
			default: // one error is enough
			}
		}
	}
	for r := range c.controlRequests {
		if of(r.subject) {
			r.end(why)
		}
	}
}

// withDenial returns a context that ends when the bus does not permit a control request.
func (c *Client) withDenial(ctx context.Context, subject string) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	r := &controlRequest{subject, end}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.controlRequests[r] = struct{}{}
	return ctx, func() {
		end(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.controlRequests, r)
	}
}
