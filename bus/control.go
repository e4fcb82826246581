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
	return ask(ctx, nc, subject, request, answer, 0)
}

const (
	// insistAfter is how long a broker that is asked may take before another one is
	// asked, too.
	insistAfter = 400 * time.Millisecond
	// mostTries is how often the same is asked at most: by then somebody else was who is
	// there at all.
	mostTries = 20
)

// Insist is Ask of one broker after the other until some broker answers, or ctx ends. It
// is for requests that may be served twice.
func Insist(ctx context.Context, nc *nats.Conn, subject string, request, answer any) error {
	return ask(ctx, nc, subject, request, answer, insistAfter)
}

func ask(ctx context.Context, nc *nats.Conn, subject string, request, answer any, another time.Duration) error {
	body, err := schema.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding a request for %s: %w", subject, err)
	}
	m, err := Request(ctx, nc, &nats.Msg{Subject: subject, Data: body}, another)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("no broker serves %s; start a broker, or check that the running brokers have a release with this verb: %w", subject, err)
	case err != nil:
		return fmt.Errorf("asking on %s: %w", subject, err)
	}
	if err := Refusal(m); err != nil {
		return err
	}
	if err := schema.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("cannot decode the answer on %s: %w", subject, err)
	}
	return nil
}

// Request sends a request to some broker, and waits for its answer until ctx ends. A
// broker that hangs, or is cut off, takes requests for as long as servers believe that it
// lives, and the next request may reach another one. So the same is asked once more where
// nothing was heard for so long (another; 0: it is asked once), and again and again, as who
// is connected to one that is cut off from two others has only one chance of three each
// time. Whatever answer comes first counts: one that takes long is not given up.
func Request(ctx context.Context, nc *nats.Conn, m *nats.Msg, another time.Duration) (*nats.Msg, error) {
	if another <= 0 {
		return nc.RequestMsgWithContext(ctx, m)
	}
	return first(ctx, another, func(ctx context.Context) (*nats.Msg, error) { return nc.RequestMsgWithContext(ctx, m) })
}

// first is what the first of several tries says.
func first(ctx context.Context, another time.Duration, try func(context.Context) (*nats.Msg, error)) (*nats.Msg, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type said struct {
		m   *nats.Msg
		err error
	}
	all := make(chan said)
	one := func() {
		var s said
		s.m, s.err = try(ctx)
		select {
		case all <- s:
		case <-ctx.Done():
		}
	}
	again := time.NewTicker(another)
	defer again.Stop()
	go one()
	for under, tries := 1, 1; ; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-again.C:
			under, tries = under+1, tries+1
			go one()
			if tries == mostTries {
				again.Stop()
			}
		case s := <-all:
			// That nobody is there to be asked now says nothing of who was before.
			if under--; under == 0 || !errors.Is(s.err, nats.ErrNoResponders) {
				return s.m, s.err
			}
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
