package roles

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
)

// Control calls [bus.Ask] with a control subject for an agent.
func Control(ctx context.Context, nc *nats.Conn, to Verb, request, answer any) error {
	subject, err := bus.ControlSubject(to.Verb, to.Agent)
	if err != nil {
		return err
	}
	return bus.Ask(ctx, nc, subject, request, answer)
}

// Insist calls [bus.Insist] with a control subject for an agent.
func Insist(ctx context.Context, nc *nats.Conn, to Verb, request, answer any) error {
	subject, err := bus.ControlSubject(to.Verb, to.Agent)
	if err != nil {
		return err
	}
	return bus.Insist(ctx, nc, subject, request, answer)
}

// A Verb is the verb of a control request and its agent. Without an agent the request is
// not about a particular one.
type Verb struct{ Verb, Agent string }
