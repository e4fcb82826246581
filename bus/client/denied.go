package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/bus"
)

// ErrDenied says that this client's credentials are not for what it asks: usually
// the agent has another name than they have. Errors of Ask wrap it beside
// [ErrUnreachable].
var ErrDenied = errors.New("the credentials are not for that")

// A controlling is a control request under way.
type controlling struct {
	subject string
	end     context.CancelCauseFunc
}

// denied ends what the bus does not permit: nobody will answer.
func (c *Client) denied(err error) {
	of := func(subject string) bool { return strings.Contains(err.Error(), strconv.Quote(subject)) }
	why := fmt.Errorf("%w: %w", ErrDenied, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.waiting {
		if of(a.subject) || of(a.subject+bus.AgainSuffix) {
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
