package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

// Ask sends a control request to a broker and decodes its answer. A refusal of the broker is
// a [schema.ControlError].
func Ask(ctx context.Context, nc *nats.Conn, subject string, request, answer any) error {
	return ask(ctx, nc, subject, request, answer, 0)
}

const (
	// insistAfter is how long a broker may take before another one gets the request, too.
	insistAfter = 400 * time.Millisecond
	// maxTries bounds the copies of a request. With so many, each reachable broker has very
	// likely received one.
	maxTries = 20
)

// Insist is Ask that sends the request again until a broker answers, or ctx ends. The request
// must be one that may be served twice.
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

// Request sends a request to a broker, and waits for its answer until ctx ends. If another is
// above 0, it sends the request again after each such interval, up to maxTries times, and
// returns the first answer. NATS may route a request to a broker that hangs or is cut off, and
// the next copy reaches another one: with two of three brokers cut off, one copy in three arrives.
func Request(ctx context.Context, nc *nats.Conn, m *nats.Msg, another time.Duration) (*nats.Msg, error) {
	if another <= 0 {
		return nc.RequestMsgWithContext(ctx, m)
	}
	return first(ctx, another, func(ctx context.Context) (*nats.Msg, error) { return nc.RequestMsgWithContext(ctx, m) })
}

// first returns the result of the first of several tries.
func first(ctx context.Context, another time.Duration, try func(context.Context) (*nats.Msg, error)) (*nats.Msg, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		m   *nats.Msg
		err error
	}
	all := make(chan result)
	one := func() {
		var s result
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
			if tries == maxTries {
				again.Stop()
			}
		case s := <-all:
			// No responder now does not mean that an earlier try will get no answer.
			if under--; under == 0 || !errors.Is(s.err, nats.ErrNoResponders) {
				return s.m, s.err
			}
		}
	}
}

// Refusal returns the error that a broker sent in place of an answer to a control request, a
// [schema.ControlError]; nil: m is an answer.
func Refusal(m *nats.Msg) error {
	message, code := m.Header.Get(schema.HeaderServiceError), m.Header.Get(schema.HeaderServiceErrorCode)
	if message == "" && code == "" {
		return nil
	}
	e := new(schema.ControlError)
	if err := schema.Unmarshal(m.Data, e); err != nil || e.Message == "" {
		e = &schema.ControlError{Code: code, Message: message}
	}
	return e
}
