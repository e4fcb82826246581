package roles

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// Control makes a control request and decodes its answer. An error that the
// fabric answered with is a [schema.ControlError].
func Control(ctx context.Context, nc *nats.Conn, to Verb, request, answer any) error {
	subject, err := bus.ControlSubject(to.Verb, to.Agent)
	if err != nil {
		return err
	}
	body, err := schema.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding a request of the verb %s: %w", to.Verb, err)
	}
	m, err := nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		return fmt.Errorf("asking on %s: %w", subject, err)
	}
	if code := m.Header.Get(schema.HeaderServiceErrorCode); code != "" {
		return &schema.ControlError{Code: code, Message: m.Header.Get(schema.HeaderServiceError)}
	}
	if err := schema.Unmarshal(m.Data, answer); err != nil {
		return fmt.Errorf("the answer on %s: %w", subject, err)
	}
	return nil
}

// A Verb is what a control request asks for, and about whom; no agent is
// nobody in particular.
type Verb struct{ Verb, Agent string }
