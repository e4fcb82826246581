// Package roles is what the processes of a load test do: the requester, which asks and
// measures, and the roles that answer it. Each way of asking is one file that holds both ends:
// raw.go (bare NATS; server.go answers within its server), webhook.go (HTTP, in one or two
// stages), fabric.go (the real thing). query.go is a whole query of an agent, asked bare or of
// the fabric. queue.go is a client of the message queue, and worker.go runs workers in Go.
//
// All ways do the same work, so that their times can be compared: the caller makes a fresh
// event of 1 KiB with an id of its own, encodes it, asks, decodes the verdict and checks it; the
// other end decodes the event and encodes an answer. All use the fabric's own types and codec.
package roles

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
)

// The names of the roles.
const (
	Requester    = "requester"
	RawResponder = "raw-responder"
	Inside       = "inside-server"
	Webhook      = "webhook"
	StageOne     = "http-aggregator"
	StageTwo     = "http-worker"
	Broker       = "broker"
	HookWorker   = "hookworker"
	Waiter       = "waiter"
	Tap          = "tap"
	Node         = "node"
	QueueClient  = "queue-client"
)

// All returns the start functions of the roles by name.
func All() map[string]proc.Start {
	return map[string]proc.Start{
		Requester:    proc.Started(startRequester),
		RawResponder: proc.Started(startRawResponder),
		Inside:       proc.Started(startInside),
		Webhook:      proc.Started(startWebhook),
		StageOne:     proc.Started(startStageOne),
		StageTwo:     proc.Started(startStageTwo),
		Broker:       proc.Started(StartBroker),
		HookWorker:   proc.Started(startHookWorker),
		Waiter:       proc.Started(startWaiter),
		Tap:          proc.Started(startTap),
		Node:         proc.Started(startNode),
		QueueClient:  proc.Started(startQueueClient),
	}
}

// An Address is the address of a role.
type Address struct {
	URL string `json:"url"`
}

// A Verb is the verb of a control request and its agent. Without an agent the request is
// not about a particular one.
type Verb struct{ Verb, Agent string }

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
