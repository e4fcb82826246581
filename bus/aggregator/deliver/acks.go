package deliver

import (
	"context"
	"sync"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/lifetime"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
)

const (
	// maxAcked bounds the acknowledged events that are remembered.
	maxAcked = 1 << 16
	// maxAcking bounds the acknowledgements that wait to be written.
	maxAcking = 1 << 14
	// acking bounds the agents whose acknowledgements are written at the same time.
	acking = 32
)

// acked names an event of an agent whose injections were delivered.
type acked struct{ agent, event string }

// Acknowledge stores that an agent received what events brought.
func (s *Deliverer) Acknowledge(ctx context.Context, agent string, events []string) error {
	s.startGrace(agent, events)
	_, unknown := s.acks.sorted(agent, events)
	if len(unknown) == 0 {
		return nil
	}
	err := s.opt.Queue.Ack(ctx, agent, unknown)
	if err == nil {
		s.acks.note(agent, unknown)
	}
	return err
}

// acks writes the acknowledgements that no claim carries, outside the path of calls, and remembers
// the events that are acknowledged. Shims repeat the acknowledgements that it drops.
type acks struct {
	write func(ctx context.Context, agent string, events []string) error
	log   *observe.Log
	ctx   context.Context //nolint:containedctx // the aggregator's life
	slots chan struct{}
	done  sync.WaitGroup

	mu sync.Mutex // guards the following fields
	// known and older are events acknowledged through this broker, in two generations. When known
	// is full, it becomes older, and the previous older is dropped.
	known, older map[acked]struct{}
	// waiting has the events to acknowledge, by agent. If an agent has an entry, a goroutine writes
	// it.
	waiting map[string][]string
	n       int // number of events in waiting
}

func newAcks(ctx context.Context, write func(context.Context, string, []string) error, log *observe.Log) *acks {
	return &acks{
		write: write, log: log, ctx: ctx, slots: make(chan struct{}, acking),
		known: make(map[acked]struct{}), waiting: make(map[string][]string),
	}
}

// sorted separates the events that are known to be acknowledged from the others.
func (k *acks) sorted(agent string, events []string) (known, unknown []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range events {
		_, young := k.known[acked{agent, e}]
		_, old := k.older[acked{agent, e}]
		if young || old {
			known = append(known, e)
		} else {
			unknown = append(unknown, e)
		}
	}
	return known, unknown
}

// note remembers that events are acknowledged. An acknowledgement is final.
func (k *acks) note(agent string, events []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range events {
		if len(k.known) >= maxAcked/2 {
			k.older, k.known = k.known, make(map[acked]struct{})
		}
		k.known[acked{agent, e}] = struct{}{}
	}
}

// later acknowledges events when it can be done. Those of one agent are written
// together, and one write at a time.
func (k *acks) later(agent string, events []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n+len(events) > maxAcking {
		return
	}
	k.n += len(events)
	before, busy := k.waiting[agent]
	k.waiting[agent] = append(before, events...)
	if !busy {
		k.done.Go(func() { k.run(agent) })
	}
}

// run writes the acknowledgements that wait for an agent, until none is left.
func (k *acks) run(agent string) {
	k.slots <- struct{}{}
	defer func() { <-k.slots }()
	for {
		events := k.next(agent)
		if events == nil {
			return
		}
		ctx, cancel := context.WithTimeout(k.ctx, lifetime.WriteTime)
		err := k.write(ctx, agent, events)
		cancel()
		if err != nil {
			k.log.Unreachable(observe.QueueStore, err)
			continue
		}
		k.log.Reachable(observe.QueueStore)
		k.note(agent, events)
	}
}

func (k *acks) next(agent string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	events := k.waiting[agent]
	if len(events) == 0 {
		delete(k.waiting, agent)
		return nil
	}
	k.waiting[agent] = nil // an empty entry means that a goroutine still writes for the agent
	k.n -= len(events)
	return events
}

// drain waits until all is written, or ctx ends.
func (k *acks) drain(ctx context.Context) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		k.done.Wait()
	}()
	select {
	case <-written:
	case <-ctx.Done():
	}
}
