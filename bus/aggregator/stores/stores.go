// Package stores has the parts of the stores of agents' state that an aggregator uses.
//
// Only this module imports it.
package stores

import (
	"context"
	"io"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
)

// Memory has the stores of the agents' state. If one is nil, the aggregator delivers and refuses
// nothing because of it, and the control verbs that need it answer that they are unavailable.
type Memory struct {
	Queue     Queue
	Rounds    Rounds
	Sessions  Sessions
	Objects   Objects
	Histories Histories
	Unjudged  Unjudged
}

// Queue is the part of [queue.Queue] that the aggregator uses.
type Queue interface {
	// These methods cost no round trip.
	Seen(agent, session, tool string)
	Due(agent, session, tool string) bool
	Holds(agent, event string) bool
	Peers(agent, session string) schema.Peers
	Pending(agent string, limit int) schema.PendingAnswer
	Names(agent, session, digest string) bool
	Allows(it *schema.Item) error
	Last() uint64
	Stats() queue.Stats

	Enqueue(ctx context.Context, it *schema.Item) (schema.Receipt, error)
	Claim(ctx context.Context, c *queue.Claim) (queue.Claimed, error)
	Ack(ctx context.Context, agent string, events []string) error
	Hold(ctx context.Context, agent string, events []string) error
	Release(ctx context.Context, agent string, events []string) error
	Note(ctx context.Context, agent, session string, change func(*schema.Peers)) error
	Withdraw(ctx context.Context, key string) (schema.WithdrawAnswer, error)
	Current(ctx context.Context) error
}

// Rounds is the part of [rounds.Rounds] that the aggregator uses.
type Rounds interface {
	Ready() error
	Get(agent string) (schema.Round, bool)
	Latest(ctx context.Context, agent string) (schema.Round, bool, error)
	Start(ctx context.Context, agent string, req *schema.RoundRequest) (schema.Round, error)
	WrapUp(ctx context.Context, agent string, req *schema.RoundRequest) (schema.Round, bool, error)
	Warned(ctx context.Context, agent string, start uint64) error
	Warn(ctx context.Context, agent string, w rounds.Warning) (may, first bool, err error)
	Warning(agent string) (event string, age time.Duration)
	Acked(ctx context.Context, agent string, events []string) error
	Denied(ctx context.Context, agent string, start uint64, event string) (schema.Round, error)
	Passed(ctx context.Context, agent string) error
	SoftDue() []schema.Round
	Blocked() int
}

// Unjudged is the part of [record.Unjudged] that the aggregator uses.
type Unjudged interface {
	Add(ctx context.Context, calls []schema.Unjudged, first func(*schema.Unjudged)) (known int, err error)
}

// Sessions is the part of [sessions.Sessions] that the aggregator uses.
type Sessions interface {
	Name(ctx context.Context, session, agent, label string) (sessions.Named, error)
	Room(ctx context.Context, percent int) error
	TakesPart(ctx context.Context, agent, session string) (bool, error)
	IsAgent(ctx context.Context, id string) (bool, error)
	Seen(agent, session string)
	Describe(a sessions.Agent)
	Lately(ctx context.Context, host string) (all []schema.AgentStatus, crowded bool, err error)
}

// Objects is the part of [objects.Objects] that the aggregator uses.
type Objects interface {
	PutWithin(ctx context.Context, r io.Reader, percent int) (schema.Object, error)
	Has(ctx context.Context, o schema.Object) error
	Part(ctx context.Context, digest string, offset int64) (data []byte, size int64, err error)
}

// Histories is the part of [objects.Histories] that the aggregator uses.
type Histories interface {
	Put(ctx context.Context, r io.Reader) (schema.Object, error)
	Fresh(ctx context.Context, o schema.Object) (bool, error)
	Part(ctx context.Context, digest string, offset int64) (data []byte, size int64, err error)
}
