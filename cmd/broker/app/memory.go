package app

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/builtin"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// memory is what is remembered of agents, and what is counted of it.
type memory struct {
	ledger  *aggregator.Ledger
	objects *objects.Objects
	queue   *queue.Queue
}

// openMemory opens what is remembered of agents. It returns when this broker
// knows all of it.
func (b *Broker) openMemory(ctx context.Context) error {
	js, err := jetstream.New(b.work)
	if err != nil {
		return fmt.Errorf("reaching JetStream: %w", err)
	}
	m := &b.memory
	m.ledger = aggregator.NewLedger(b.reg, b.log)
	if m.objects, err = objects.Open(ctx, js, objects.Options{Logger: b.log}); err != nil {
		return err
	}
	b.stack.Push("objects", func(context.Context) error { return m.objects.Close() })
	m.queue, err = queue.Open(ctx, js, queue.Options{Finish: m.finish, Watch: m.ledger.Queue(), Logger: b.log})
	if err != nil {
		return err
	}
	b.stack.Push("queue", m.queue.Close)
	return nil
}

// finish does what has to be done when an item was handed over: the grace of a
// round begins when its agent was warned.
func (m *memory) finish(ctx context.Context, agent string, it *schema.Item) error {
	if it.Producer != aggregator.RoundProducer {
		return nil
	}
	return nil
}

// ready is what is wrong with what this broker knows of it; nil: nothing.
func (m *memory) ready() error { return m.queue.Ready() }

// use is the memory as the aggregator uses it.
func (m *memory) use() aggregator.Memory {
	return aggregator.Memory{Queue: m.queue, Objects: m.objects}
}

// stage makes the hooks that run in the aggregator.
func stage(h *schema.Hook) (aggregator.Stage, error) { return builtin.Stage(h) }
