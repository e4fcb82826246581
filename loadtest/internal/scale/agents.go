package scale

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
)

// shared is the largest number of connections that agents share, as agents do whose hosts
// run a daemon.
const shared = 500

// delivering is the configuration that most fabrics start with: delivery, and one hook
// inside the broker. The hook is idempotent, so that calls survive a kill of the broker.
func delivering() string {
	return fmt.Sprintf("presets: [delivery]\nhooks:\n  PreToolUse:\n    - {name: audit, matcher: %s, type: builtin, handler: allow, idempotent: true}\n", tool)
}

// growAgents grows the number of agents that ask in turn.
func (r *run) growAgents(ctx context.Context) (err error) {
	most := r.agents[len(r.agents)-1]
	f, err := r.start(ctx, "agents", delivering())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Stop()) }()
	if err := f.Requester.Ask(ctx, roles.Request{Open: min(shared, most) - 1}, nil); err != nil {
		return err
	}
	t := report.Table{
		Title: "What agents take of the broker", Columns: []string{"agents", "connections", "heap for each further agent"},
		Note: "The heap is measured after a garbage collection. It includes connections that are used for the first time.",
	}
	one := &series{}
	g := &growth{part: "agents", title: "Agents that ask in turn", of: "agents", all: []*series{one}, note: fmt.Sprintf("%d callers, one hook inside the broker, and delivery. Up to %d agents have a connection each; more agents share that many. With few connections, one read or write carries several messages, so the first steps are cheaper.", bench.Many, shared)}
	first, err := bench.Settle(ctx, f.Broker)
	if err != nil {
		return err
	}
	before, known := first, 0
	for _, n := range r.agents {
		at := target(tool, 1)
		at.Agents, at.Connections = n, min(shared, n)
		one.steps = append(one.steps, step{counted(n, "agent", "agents"), n, f, at, r.window(bench.Many)})
		if err := f.Requester.Ask(ctx, roles.Request{Target: at, Each: true}, nil); err != nil {
			return err
		}
		now, err := bench.Settle(ctx, f.Broker)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, []string{grouped(float64(n)), grouped(float64(at.Connections)), bytes((float64(now.Heap) - float64(before.Heap)) / float64(n-known))})
		before, known = now, n
	}
	u := &r.report.Units
	u.Agent = max(float64(before.Heap)-float64(first.Heap), 0) / float64(most)
	r.report.add(fmt.Sprintf("agents: heap of the broker for each of %s", counted(most, "agent", "agents")), "B", u.Agent)
	r.report.Tables = append(r.report.Tables, t)
	if err := r.measure(ctx, g); err != nil {
		return err
	}
	u.FleetCall = g.median(one, len(one.steps)-1, bench.CPUOf(roles.Broker))
	u.Cursor, u.Seen, err = stored(ctx, f.URL())
	return err
}

// stored returns the bytes of an agent in the buckets of cursors and of seen agents.
func stored(ctx context.Context, url string) (cursor, seen float64, err error) {
	nc, err := bus.Connect(ctx, bus.Options{URL: url, Name: "loadtest scale"})
	if err != nil {
		return 0, 0, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the buckets: %w", err)
	}
	for bucket, to := range map[string]*float64{"hook_sequences": &cursor, "hook_agents": &seen} {
		stream, err := js.Stream(ctx, "KV_"+bucket)
		if err != nil {
			return 0, 0, fmt.Errorf("reading the bucket %s: %w", bucket, err)
		}
		state := stream.CachedInfo().State
		*to = float64(state.Bytes) / float64(max(state.Msgs, 1))
	}
	return cursor, seen, nil
}
