package roles

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
)

// Control is [bus.Ask] about somebody.
func Control(ctx context.Context, nc *nats.Conn, to Verb, request, answer any) error {
	subject, err := bus.ControlSubject(to.Verb, to.Agent)
	if err != nil {
		return err
	}
	return bus.Ask(ctx, nc, subject, request, answer)
}

// Insist is [bus.Insist] about somebody.
func Insist(ctx context.Context, nc *nats.Conn, to Verb, request, answer any) error {
	subject, err := bus.ControlSubject(to.Verb, to.Agent)
	if err != nil {
		return err
	}
	return bus.Insist(ctx, nc, subject, request, answer)
}

// A Verb is what a control request asks for, and about whom; no agent is
// nobody in particular.
type Verb struct{ Verb, Agent string }
