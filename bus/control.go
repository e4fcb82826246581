package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

// Ask puts a control request to some broker and reads its answer. What the broker
// refused is a [schema.ControlError].
func Ask(ctx context.Context, nc *nats.Conn, subject string, request, answer any) error {
	body, err := schema.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding a request for %s: %w", subject, err)
	}
	m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: body})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("no broker serves %s: %w", subject, err)
	case err != nil:
		return fmt.Errorf("asking on %s: %w", subject, err)
	}
	if err := Refusal(m); err != nil {
		return err
	}
	if err := schema.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("the answer on %s can not be read: %w", subject, err)
	}
	return nil
}

// insistAfter is how long the first broker that is asked may take before another one
// may be; each further one has half as long again.
const insistAfter = 250 * time.Millisecond

// Insist is Ask until some broker answers, or ctx ends. A broker that hangs, or is cut
// off, takes requests for as long as the server believes that it lives, and the next
// request may reach another one. It is for requests that change nothing.
func Insist(ctx context.Context, nc *nats.Conn, subject string, request, answer any) error {
	for wait := insistAfter; ; wait += wait / 2 {
		try, cancel := context.WithTimeout(ctx, wait)
		err := Ask(try, nc, subject, request, answer)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// Refusal is what a broker says in the place of an answer to a control request, a
// [schema.ControlError]; nil: it answered.
func Refusal(m *nats.Msg) error {
	said, code := m.Header.Get(schema.HeaderServiceError), m.Header.Get(schema.HeaderServiceErrorCode)
	if said == "" && code == "" {
		return nil
	}
	e := new(schema.ControlError)
	if err := schema.Unmarshal(m.Data, e); err != nil || e.Message == "" {
		e = &schema.ControlError{Code: code, Message: said} // the headers say enough
	}
	return e
}
