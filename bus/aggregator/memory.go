package aggregator

import (
	"context"
	"io"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
)

// Memory is what the fabric remembers of agents. A part that is nil is not
// there: nothing is handed over or refused because of it, and the control verbs
// that need it answer that they are not available.
type Memory struct {
	Queue     Queue
	Rounds    Rounds
	Sessions  Sessions
	Objects   Objects
	Histories Histories
	Unjudged  Unjudged
}

// Queue is what is used of a [queue.Queue].
type Queue interface {
	Reader
	Writer
}

// Reader is the part of a [Queue] that costs no round trip.
type Reader interface {
	Seen(agent, session, tool string)
	Due(agent, session, tool string) bool
	Holds(agent, event string) bool
	Peers(agent, session string) schema.Peers
	Pending(agent string, limit int) schema.PendingAnswer
	Names(agent, session, digest string) bool
	Allows(it *schema.Item) error
	Last() uint64
	Stats() queue.Stats
}

// Writer is the part of a [Queue] that does.
type Writer interface {
	Enqueue(ctx context.Context, it *schema.Item) (schema.Receipt, error)
	Claim(ctx context.Context, c *queue.Claim) (queue.Claimed, error)
	Ack(ctx context.Context, agent string, events []string) error
	Hold(ctx context.Context, agent string, events []string) error
	Release(ctx context.Context, agent string, events []string) error
	Note(ctx context.Context, agent, session string, change func(*schema.Peers)) error
	Withdraw(ctx context.Context, key string) (schema.WithdrawAnswer, error)
	Current(ctx context.Context) error
}

// Rounds is what is used of a [rounds.Rounds].
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

// Unjudged is what is used of an [unjudged.Calls].
type Unjudged interface {
	Add(ctx context.Context, calls []schema.Unjudged, first func(*schema.Unjudged)) (known int, err error)
}

// Sessions is what is used of a [sessions.Sessions].
type Sessions interface {
	Name(ctx context.Context, session, agent, label string) (sessions.Named, error)
	Room(ctx context.Context, percent int) error
	TakesPart(ctx context.Context, agent, session string) (bool, error)
	IsAgent(ctx context.Context, id string) (bool, error)
	Seen(agent, session string)
	Describe(a sessions.Agent)
	Lately(ctx context.Context, host string) (all []schema.AgentStatus, crowded bool, err error)
}

// Objects is what is used of an [objects.Objects].
type Objects interface {
	PutWithin(ctx context.Context, r io.Reader, percent int) (schema.Object, error)
	Has(ctx context.Context, o schema.Object) error
	Part(ctx context.Context, digest string, offset int64) (data []byte, size int64, err error)
}

// Histories is what is used of the [objects.Histories] by who answers agents and workers.
type Histories interface {
	Put(ctx context.Context, r io.Reader) (schema.Object, error)
	Fresh(ctx context.Context, o schema.Object) (bool, error)
	Part(ctx context.Context, digest string, offset int64) (data []byte, size int64, err error)
}

// stateBudget is how long a call waits at most for what is remembered: agents go
// on without injections while it cannot be reached.
const stateBudget = 100 * time.Millisecond

// budgeted is the context of what a call asks of the memory. It ends in time
// for the verdict to be sent before the call's deadline.
func (a *Aggregator) budgeted(deadline time.Time) (context.Context, context.CancelFunc) {
	left := time.Until(deadline)
	return context.WithTimeout(a.life.ctx, min(stateBudget, left-schema.Margin(left)))
}

// round is the agent's round; nil: it has none.
func (a *Aggregator) round(agent string) *schema.Round {
	if a.opt.Memory.Rounds == nil {
		return nil
	}
	r, ok := a.opt.Memory.Rounds.Get(agent)
	if !ok {
		return nil
	}
	known := r // nothing is put on the heap for agents without a round
	return &known
}

// maxSources bounds the sources that a status tells apart: of free words there may
// be as many as items.
const maxSources = 100

// remembered adds to a status what is remembered of agents.
func (a *Aggregator) remembered(s *schema.FabricStatus) {
	if a.opt.Memory.Queue != nil {
		st := a.opt.Memory.Queue.Stats()
		s.Pending, s.OldestPending = st.Pending, schema.Duration(st.Oldest)
		if len(s.Pending) > maxSources {
			s.Pending = observe.SumBySource(st.Pending)
		}
	}
	if a.opt.Memory.Rounds != nil {
		s.BlockedRounds = a.opt.Memory.Rounds.Blocked()
	}
}
