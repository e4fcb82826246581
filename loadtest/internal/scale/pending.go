package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// fillers is the number of concurrent requests that fill the queue, perAgent the number of
	// items of each of the other agents.
	fillers  = 64
	perAgent = 20
	// mostOwn is the largest step with items of one agent, and roomOwn how many the broker accepts
	// for it: it reserves the rest for rounds. The queue is filled with fewer, so that it rejects none
	// while others are on their way.
	mostOwn = 10_000
	roomOwn = mostOwn / 100 * 95
	// notNow is the tool after which the agent's own items are due. No call has it.
	notNow = "Never"
)

// growPending grows the number of waiting items: of other agents, and of the agent that asks.
func (r *run) growPending(ctx context.Context) (err error) {
	var all []*bench.Fabric
	defer func() { err = errors.Join(err, bench.StopAll(all)) }()
	others, own := &series{name: "for others"}, &series{name: "for the agent, not now"}
	g := &growth{
		part: "pending", title: "Items that wait", of: "items that wait", all: []*series{others, own},
		note: fmt.Sprintf("One caller, and no call delivers an item: the items belong to other agents, or wait until the agent calls another tool. At most %s of the latter can wait.", grouped(roomOwn)),
	}
	t := report.Table{Title: "What items that wait take of the broker", Columns: []string{"items for others", "heap for each", "memory for each", "put into the queue", "broker's CPU for each", "a broker is ready again after"}}
	for _, n := range r.pending {
		f, err := r.start(ctx, fmt.Sprintf("pending-%d", n), "presets: [delivery]\n")
		if err != nil {
			return err
		}
		all = append(all, f)
		row, err := r.fill(ctx, f, n)
		if err != nil {
			return fmt.Errorf("%d items: %w", n, err)
		}
		t.Rows = append(t.Rows, row)
		at := target(tool, 0)
		at.Event, at.Prefix = schema.PostToolUse, "me-"
		others.steps = append(others.steps, step{counted(n, "item", "items"), n, f, at, r.window(1)})
		if n <= mostOwn {
			at.Prefix = "mine-"
			own.steps = append(own.steps, step{counted(n, "item", "items"), n, f, at, r.window(1)})
		}
		r.Say("pending: %s items wait", grouped(float64(n)))
	}
	r.report.Tables = append(r.report.Tables, t)
	return r.measure(ctx, g)
}

// fill puts items into the queue, restarts the broker, and returns what the items take.
func (r *run) fill(ctx context.Context, f *bench.Fabric, n int) ([]string, error) {
	before, err := bench.Settle(ctx, f.Broker)
	if err != nil {
		return nil, err
	}
	rate, err := put(ctx, f, roles.QueueRequest{Calls: n, Prefix: "other-", Agents: max(n/perAgent, 1)})
	if err != nil {
		return nil, err
	}
	after, err := bench.Settle(ctx, f.Broker)
	if err != nil {
		return nil, err
	}
	if err := f.Broker.Stop(); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := f.Up(ctx); err != nil {
		return nil, err
	}
	up := time.Since(began).Seconds()
	if n <= mostOwn {
		if _, err := put(ctx, f, roles.QueueRequest{Calls: min(n, roomOwn-fillers), Prefix: "mine-", Agents: 1, Matcher: notNow}); err != nil {
			return nil, err
		}
	}
	u := &r.report.Units
	if n == 0 {
		u.Start = up
		return []string{"0", "–", "–", "–", "–", seconds(up)}, nil
	}
	each := func(a, b uint64) float64 { return (float64(b) - float64(a)) / float64(n) }
	heap := each(before.Heap, after.Heap)
	u.ItemCPU = after.Before.Since(before.After).CPU.Std().Seconds() / float64(n)
	u.Item, u.ItemStart = heap, max(up-u.Start, 0)/float64(n)
	name := "pending: " + counted(n, "item", "items")
	r.report.add(name+", heap of the broker for each", "B", heap)
	r.report.add(name+", a broker is ready again", "s", up)
	return []string{grouped(float64(n)), bytes(heap), bytes(each(before.Resident, after.Resident)), perSecond(rate), seconds(u.ItemCPU), seconds(up)}, nil
}

// put puts items into the queue, and returns how many per second it put.
func put(ctx context.Context, f *bench.Fabric, q roles.QueueRequest) (float64, error) {
	if q.Calls == 0 {
		return 0, nil
	}
	q.Do, q.Callers = roles.Enqueue, fillers
	c, err := f.Crew.Start(ctx, roles.QueueClient, roles.QueueConfig{NATS: f.URL()}, nil)
	if err != nil {
		return 0, err
	}
	var got roles.QueueFigures
	if err := c.Ask(ctx, q, &got); err != nil {
		return 0, fmt.Errorf("putting items into the queue: %w", err)
	}
	return got.PerSecond, c.Stop()
}
