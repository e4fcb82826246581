package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/aggregator/deliver"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// memory is the stored state of agents, and its metrics.
type memory struct {
	ledger   *observe.Ledger
	objects  *objects.Objects
	rounds   *rounds.Rounds
	sessions *sessions.Sessions
	queue    *queue.Queue
	unjudged *record.Unjudged
	freezes  *freezes.Freezes
	// histories stores parts of conversations; nil: the server had no space for them.
	histories *objects.Objects
}

// openMemory opens the stored state of agents. It returns when this broker has a complete copy.
func (b *Broker) openMemory(ctx context.Context) error {
	js, err := jetstream.New(b.work)
	if err != nil {
		return fmt.Errorf("reaching JetStream: %w", err)
	}
	m := &b.memory
	m.ledger = observe.NewLedger(b.reg, b.log)
	// The queue is opened after the rounds and closed before them, because it reports delivered
	// warnings to them. The parts after it are optional to it.
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
	b.memory.objects, err = objects.Open(ctx, js, objects.Options{Replicas: b.replicas(), Room: b.storage(), Logger: b.log})
	return func(context.Context) error { return b.memory.objects.Close() }, err
}

// openHistories opens the store of conversations. If the server has no space for it, only hooks
// that need a long conversation fail.
func (b *Broker) openHistories(ctx context.Context, js jetstream.JetStream) (stop func(context.Context) error, err error) {
	o := objects.Options{Bucket: objects.Histories, Replicas: b.replicas(), Room: b.storage(), Logger: b.log}
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
	b.memory.rounds, err = rounds.Open(ctx, js, rounds.Options{Replicas: b.replicas(), Room: b.storage(), Conflict: b.memory.ledger.Conflict, Logger: b.log})
	return func(ctx context.Context) error { return b.memory.rounds.Close(ctx) }, err
}

func (b *Broker) openSessions(ctx context.Context, js jetstream.JetStream) (stop func(context.Context) error, err error) {
	b.memory.sessions, err = sessions.Open(ctx, js, sessions.Options{Replicas: b.replicas(), Room: b.storage(), Logger: b.log})
	return func(ctx context.Context) error { return b.memory.sessions.Close(ctx) }, err
}

func (b *Broker) openUnjudged(ctx context.Context, js jetstream.JetStream) (stop func(context.Context) error, err error) {
	b.memory.unjudged, err = record.OpenUnjudged(ctx, js, record.UnjudgedOptions{Replicas: b.replicas(), Room: b.storage()})
	return func(context.Context) error { return nil }, err
}

// openFreezes opens the freezes. Each renewal of the lease checks that no freeze was missed.
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
	m.queue, err = queue.Open(ctx, js, queue.Options{Replicas: b.replicas(), Room: b.storage(), Finish: m.finish, Watch: m.ledger.Queue(), Logger: b.log,
		MaxPerAuthor: may.Answers, MaxAuthorBytes: may.AnswerBytes, Reserve: may.Reserve})
	return func(ctx context.Context) error { return m.queue.Close(ctx) }, err
}

// storage returns how many bytes can be stored; 0: unknown, because a NATS deployment stores them.
func (b *Broker) storage() int64 {
	if !b.stores() {
		return 0
	}
	return b.server.Room()
}

// finish handles a delivered item: the grace period of a round begins with its warning.
func (m *memory) finish(ctx context.Context, agent string, it *schema.Item) error {
	if it.Producer != deliver.RoundProducer {
		return nil
	}
	return m.rounds.Warned(ctx, agent, it.Number)
}

// parts returns the store of conversations for the worker; nil: there is no such store.
func (m *memory) parts() workers.Parts {
	if m.histories == nil {
		return nil
	}
	return m.histories
}

// ready returns nil if this broker's copies are complete.
func (m *memory) ready() error {
	if err := m.queue.Ready(); err != nil {
		return err
	}
	return errors.Join(m.rounds.Ready(), m.freezes.Ready())
}

// unstored returns the error of the last write, for each part whose last write failed.
func (m *memory) unstored() error {
	return errors.Join(m.queue.Unstored(), m.rounds.Unstored(), m.sessions.Unstored(), m.objects.Unstored(), m.unjudged.Unstored(), m.freezes.Unstored())
}

// clearUnstored forgets these errors, after the server was restarted.
func (m *memory) clearUnstored() {
	m.queue.ClearUnstored()
	m.rounds.ClearUnstored()
	m.sessions.ClearUnstored()
	m.objects.ClearUnstored()
	m.unjudged.ClearUnstored()
	m.freezes.ClearUnstored()
}

// use returns the memory in the aggregator's form.
func (m *memory) use() stores.Memory {
	all := stores.Memory{Queue: m.queue, Objects: m.objects, Rounds: m.rounds, Sessions: m.sessions, Unjudged: m.unjudged}
	if m.histories != nil {
		all.Histories = m.histories
	}
	return all
}
