package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/state"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// fillers is the number of concurrent requests that fill the queue, perAgent the number of
	// items of each of the other agents.
	fillers  = 64
	perAgent = 20
	// mostOwn is the limit of waiting items of one agent. The queue is filled with fewer, so
	// that it rejects none while others are on their way.
	mostOwn = 10_000
	// notNow is the tool after which the agent's own items are due. No call has it.
	notNow = "Never"
)

// growPending grows the number of waiting items: of other agents, and of the agent that asks.
func (r *run) growPending(ctx context.Context) (err error) {
	var all stands
	defer func() { err = errors.Join(err, all.stop()) }()
	others, own := &series{name: "for others"}, &series{name: "for the agent, not now"}
	g := &growth{
		part: "pending", title: "Items that wait", of: "items that wait", all: []*series{others, own},
		note: fmt.Sprintf("One caller, and no call delivers an item: the items belong to other agents, or wait until the agent calls another tool. At most %s of the latter can wait.", grouped(mostOwn)),
	}
	t := result.Table{Title: "What items that wait take of the broker", Columns: []string{"items for others", "heap for each", "memory for each", "put into the queue", "broker's CPU for each", "a broker is ready again after"}}
	for _, n := range r.pending {
		s, err := r.start(ctx, fmt.Sprintf("pending-%d", n), "presets: [delivery]\n")
		if err != nil {
			return err
		}
		all = append(all, s)
		row, err := s.fill(ctx, n, r.report)
		if err != nil {
			return fmt.Errorf("%d items: %w", n, err)
		}
		t.Rows = append(t.Rows, row)
		q := roles.CrowdRequest{Event: schema.PostToolUse, Tool: tool, Window: r.window(1), Prefix: "me-"}
		others.steps = append(others.steps, step{counted(n, "item", "items"), n, s, q})
		if n <= mostOwn {
			q.Prefix = "mine-"
			own.steps = append(own.steps, step{counted(n, "item", "items"), n, s, q})
		}
		r.Say("pending: %s items wait", grouped(n))
	}
	r.report.Tables = append(r.report.Tables, t)
	return r.measure(ctx, g)
}

// fill puts items into the queue, restarts the broker, and returns what the items take.
func (s *stand) fill(ctx context.Context, n int, r *Report) ([]string, error) {
	before, err := look(ctx, s.broker)
	if err != nil {
		return nil, err
	}
	rate, err := s.put(ctx, state.Telling{Calls: n, Prefix: "other-", Agents: max(n/perAgent, 1)})
	if err != nil {
		return nil, err
	}
	after, err := look(ctx, s.broker)
	if err != nil {
		return nil, err
	}
	if err := s.broker.Stop(); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := s.up(ctx); err != nil {
		return nil, err
	}
	up := time.Since(began).Seconds()
	if n <= mostOwn {
		if _, err := s.put(ctx, state.Telling{Calls: min(n, mostOwn-fillers), Prefix: "mine-", Agents: 1, Matcher: notNow}); err != nil {
			return nil, err
		}
	}
	if n == 0 {
		r.Units.Start = up
		return []string{"0", "–", "–", "–", "–", units.Value(up, "s")}, nil
	}
	each := func(a, b float64) float64 { return (b - a) / float64(n) }
	heap := each(float64(before.Heap), float64(after.Heap))
	r.Units.ItemCPU = after.Before.Since(before.After).CPU.Std().Seconds() / float64(n)
	r.Units.Item, r.Units.ItemStart = heap, max(up-r.Units.Start, 0)/float64(n)
	name := "pending: " + counted(n, "item", "items")
	r.add(name+", heap of the broker for each", "B", heap)
	r.add(name+", a broker is ready again", "s", up)
	return []string{
		grouped(n), units.Value(heap, "B"), units.Value(each(before.Resident, after.Resident), "B"), units.Value(rate, "/s"), units.Value(r.Units.ItemCPU, "s"), units.Value(up, "s"),
	}, nil
}

// put puts items into the queue, and returns how many per second it put.
func (s *stand) put(ctx context.Context, t state.Telling) (float64, error) {
	if t.Calls == 0 {
		return 0, nil
	}
	t.Do, t.Callers = state.Enqueue, fillers
	teller, err := s.crew.Start(ctx, state.Teller, state.TellerConfig{NATS: s.nats}, nil)
	if err != nil {
		return 0, err
	}
	var told state.Told
	if err := teller.Ask(ctx, t, &told); err != nil {
		return 0, fmt.Errorf("putting items into the queue: %w", err)
	}
	return told.PerSecond, teller.Stop()
}
