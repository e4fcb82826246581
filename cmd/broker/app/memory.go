package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/builtin"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/bus/state/unjudged"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// memory is what is remembered of agents, and what is counted of it.
type memory struct {
	ledger   *observe.Ledger
	objects  *objects.Objects
	rounds   *rounds.Rounds
	sessions *sessions.Sessions
	queue    *queue.Queue
	unjudged *unjudged.Calls
	freezes  *freezes.Freezes
	// histories are parts of conversations; nil: there was no room for them.
	histories *objects.Objects
}

// openMemory opens what is remembered of agents. It returns when this broker
// knows all of it.
func (b *Broker) openMemory(ctx context.Context) error {
	js, err := jetstream.New(b.work)
	if err != nil {
		return fmt.Errorf("reaching JetStream: %w", err)
	}
	m := &b.memory
	m.ledger = observe.NewLedger(b.reg, b.log)
	// The queue is opened last and closed first: when a warning was handed over,
	// it tells the rounds. Only what can be done without comes after it.
	for _, part := range []struct {
		name string
		open func(context.Context, jetstream.JetStream) (func(context.Context) error, error)
	}{{"objects", b.openObjects}, {"rounds", b.openRounds}, {"sessions", b.openSessions}, {"unjudged calls", b.openUnjudged}, {"queue", b.openQueue}, {"freezes", b.openFreezes}, {"histories", b.openHistories}} {
		stop, err := part.open(ctx, js)
		if err != nil {
			return err
		}
		b.stack.Push(part.name, stop)
	}
	return nil
}

func (b *Broker) openObjects(ctx context.Context, js jetstream.JetStream) (stop func(context.Context) error, err error) {
	b.memory.objects, err = objects.Open(ctx, js, objects.Options{Replicas: b.replicas(), Room: b.room(), Logger: b.log})
	return func(context.Context) error { return b.memory.objects.Close() }, err
}

// openHistories makes the store of conversations. Where there is no room for it,
// hooks that need a long one fail, and all others go on.
func (b *Broker) openHistories(ctx context.Context, js jetstream.JetStream) (stop func(context.Context) error, err error) {
	o := objects.Options{Bucket: objects.Histories, Replicas: b.replicas(), Room: b.room(), Logger: b.log}
	if b.memory.histories, err = objects.Open(ctx, js, o); err != nil && ctx.Err() == nil {
		b.log.Warn("the store for conversations cannot be opened; hooks fail that need a conversation too long for its event", "error", err)
		b.memory.histories, err = nil, nil
	}
	return func(context.Context) error {
		if b.memory.histories == nil {
			return nil
		}
		return b.memory.histories.Close()
	}, err
}

func (b *Broker) openRounds(ctx context.Context, js jetstream.JetStream) (stop func(context.Context) error, err error) {
	b.memory.rounds, err = rounds.Open(ctx, js, rounds.Options{Replicas: b.replicas(), Room: b.room(), Conflict: b.memory.ledger.Conflict, Logger: b.log})
	return func(ctx context.Context) error { return b.memory.rounds.Close(ctx) }, err
}

func (b *Broker) openSessions(ctx context.Context, js jetstream.JetStream) (stop func(context.Context) error, err error) {
	b.memory.sessions, err = sessions.Open(ctx, js, sessions.Options{Replicas: b.replicas(), Room: b.room(), Logger: b.log})
	return func(ctx context.Context) error { return b.memory.sessions.Close(ctx) }, err
}

func (b *Broker) openUnjudged(ctx context.Context, js jetstream.JetStream) (stop func(context.Context) error, err error) {
	b.memory.unjudged, err = unjudged.Open(ctx, js, unjudged.Options{Replicas: b.replicas(), Room: b.room()})
	return func(context.Context) error { return nil }, err
}

// openFreezes makes this broker know what is frozen, and look at each renewal of its
// lease whether it missed something.
func (b *Broker) openFreezes(ctx context.Context, js jetstream.JetStream) (stop func(context.Context) error, err error) {
	if b.memory.freezes, err = freezes.Open(ctx, js, freezes.Options{Replicas: b.replicas(), Logger: b.log}); err != nil {
		return nil, err
	}
	b.lease.Also(b.memory.freezes.Confirm)
	return func(context.Context) error { b.memory.freezes.Close(); return nil }, nil
}

func (b *Broker) openQueue(ctx context.Context, js jetstream.JetStream) (stop func(context.Context) error, err error) {
	m := &b.memory
	may := b.opt.Allowances.Complete()
	m.queue, err = queue.Open(ctx, js, queue.Options{Replicas: b.replicas(), Room: b.room(), Finish: m.finish, Watch: m.ledger.Queue(), Logger: b.log,
		MaxPerAuthor: may.Answers, MaxAuthorBytes: may.AnswerBytes, Reserve: may.Reserve})
	return func(ctx context.Context) error { return m.queue.Close(ctx) }, err
}

// room is how much can be stored; 0: a deployment of somebody else's knows.
func (b *Broker) room() int64 {
	if !b.stores() {
		return 0
	}
	return b.server.Room()
}

// finish does what has to be done when an item was handed over: the grace of a
// round begins when its agent was warned.
func (m *memory) finish(ctx context.Context, agent string, it *schema.Item) error {
	if it.Producer != aggregator.RoundProducer {
		return nil
	}
	return m.rounds.Warned(ctx, agent, it.Number)
}

// parts is where conversations lie; nil: nobody keeps them here.
func (m *memory) parts() workers.Parts {
	if m.histories == nil {
		return nil
	}
	return m.histories
}

// ready is what is wrong with what this broker knows of it; nil: nothing.
func (m *memory) ready() error {
	if err := m.queue.Ready(); err != nil {
		return err
	}
	return errors.Join(m.rounds.Ready(), m.freezes.Ready())
}

// unstored is why something of it was not stored last; nil: all of it was.
func (m *memory) unstored() error {
	return errors.Join(m.queue.Unstored(), m.rounds.Unstored(), m.sessions.Unstored(), m.objects.Unstored(), m.unjudged.Unstored(), m.freezes.Unstored())
}

// anew forgets what was not stored before the server was mended.
func (m *memory) anew() {
	m.queue.Anew()
	m.rounds.Anew()
	m.sessions.Anew()
	m.objects.Anew()
	m.unjudged.Anew()
	m.freezes.Anew()
}

// use is the memory as the aggregator uses it.
func (m *memory) use() aggregator.Memory {
	all := aggregator.Memory{Queue: m.queue, Objects: m.objects, Rounds: m.rounds, Sessions: m.sessions, Unjudged: m.unjudged}
	if m.histories != nil {
		all.Histories = m.histories
	}
	return all
}

// stage makes the hooks that run in the aggregator.
func stage(h *schema.Hook) (aggregator.Stage, error) { return builtin.Stage(h) }
