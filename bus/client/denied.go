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

// A controlling is a control request under way.
type controlling struct {
	subject string
	end     context.CancelCauseFunc
}

// refused takes in why the connection is not made again.
func (c *Client) refused(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal = why
}

// refusedBy is why there is no connection, or none that an answer can come by; nil: nothing is known of that.
func (c *Client) refusedBy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refusal
}

// denied ends what the bus does not permit: nobody will answer.
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
			default: // once is enough
			}
		}
	}
	for r := range c.controlling {
		if of(r.subject) {
			r.end(why)
		}
	}
}

// heeding is a context that ends when the bus does not permit a control request.
func (c *Client) heeding(ctx context.Context, subject string) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	r := &controlling{subject, end}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.controlling[r] = struct{}{}
	return ctx, func() {
		end(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.controlling, r)
	}
}
