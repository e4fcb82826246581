package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/state"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// fillers is how many items are put into the queue at the same time while it is
	// filled, and each of the other agents gets so many of them.
	fillers  = 64
	perAgent = 20
	// mostOwn is how many items may wait for one agent; so that the last of them are
	// not refused while others are on their way, a few less do.
	mostOwn = 10_000
	// notNow is the tool after which the agent's own items may come: never here.
	notNow = "Never"
)

// pending grows the number of items that wait, for others and for the agent that asks.
func (o *Options) pending(ctx context.Context, r *Report) (err error) {
	var all stands
	defer func() { err = errors.Join(err, all.stop()) }()
	g := &growth{part: "pending", title: "Items that wait", of: "items that wait",
		note: fmt.Sprintf("One caller, and no call delivers an item: the items belong to other agents, or wait until the agent calls another tool. At most %s of the latter can wait.", grouped(mostOwn))}
	others, own := &series{name: "for others"}, &series{name: "for the agent, not now"}
	g.all = []*series{others, own}
	t := result.Table{Title: "What items that wait take of the broker", Columns: []string{"items for others", "heap for each", "memory for each", "put into the queue", "broker's CPU for each", "a broker is ready again after"}}
	for _, n := range o.Pending {
		s, err := o.stand(ctx, fmt.Sprintf("pending-%d", n), "presets: [delivery]\n")
		if err != nil {
			return err
		}
		all = append(all, s)
		row, err := s.fill(ctx, n, r)
		if err != nil {
			return fmt.Errorf("%d items: %w", n, err)
		}
		t.Rows = append(t.Rows, row)
		q := roles.CrowdRequest{Event: schema.PostToolUse, Tool: tool, Window: o.window(1), Prefix: "me-"}
		if err := s.ready(ctx, q); err != nil {
			return err
		}
		others.steps = append(others.steps, s.step(counted(n, "item", "items"), n, q))
		if n <= mostOwn {
			q.Prefix = "mine-"
			own.steps = append(own.steps, s.step(counted(n, "item", "items"), n, q))
		}
		o.say("pending: %s items wait", grouped(n))
	}
	if err := o.repeated(ctx, g); err != nil {
		return err
	}
	g.tell(r)
	r.Tables = append(r.Tables, t)
	return nil
}

// fill puts items into the queue and says what the broker takes then. The broker is
// started anew in between, so that it holds what it reads back and no garbage.
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
		return []string{"0", "–", "–", "–", "–", micros(up)}, nil
	}
	each := func(a, b float64) float64 { return (b - a) / float64(n) }
	heap := each(float64(before.Heap), float64(after.Heap))
	r.Units.ItemCPU = after.Before.Since(before.After).CPU.Std().Seconds() / float64(n)
	r.Units.Item, r.Units.ItemStart = heap, max(up-r.Units.Start, 0)/float64(n)
	name := "pending: " + counted(n, "item", "items")
	r.Figures = append(r.Figures, result.Figured(name+", heap of the broker for each", "B", result.Lower, []float64{heap}),
		result.Figured(name+", a broker is ready again", "s", result.Lower, []float64{up}))
	return []string{grouped(n), size(heap), size(each(before.Resident, after.Resident)), fmt.Sprintf("%.0f /s", rate), micros(r.Units.ItemCPU), micros(up)}, nil
}

// put puts items into the queue, and says how many per second that were.
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
