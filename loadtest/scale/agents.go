package scale

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
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
func (r *run) growAgents(ctx context.Context) error {
	most := r.agents[len(r.agents)-1]
	return r.with(ctx, "agents", delivering(), func(s *stand) error {
		if err := s.crowd.Ask(ctx, roles.CrowdRequest{Open: min(shared, most) - 1}, nil); err != nil {
			return err
		}
		t := result.Table{
			Title: "What agents take of the broker", Columns: []string{"agents", "connections", "heap for each further agent"},
			Note: "The heap is measured after a garbage collection. It includes connections that are used for the first time.",
		}
		one := &series{}
		g := &growth{part: "agents", title: "Agents that ask in turn", of: "agents", all: []*series{one}, note: fmt.Sprintf("%d callers, one hook inside the broker, and delivery. Up to %d agents have a connection each; more agents share that many. With few connections, one read or write carries several messages, so the first steps are cheaper.", bench.Many, shared)}
		first, err := look(ctx, s.broker)
		if err != nil {
			return err
		}
		before, known := first, 0
		for _, n := range r.agents {
			q := roles.CrowdRequest{Agents: n, Connections: min(shared, n), Tool: tool, Hooks: 1, Window: r.window(bench.Many)}
			one.steps = append(one.steps, step{counted(n, "agent", "agents"), n, s, q})
			q.Each = true
			if err := s.crowd.Ask(ctx, q, nil); err != nil {
				return err
			}
			now, err := look(ctx, s.broker)
			if err != nil {
				return err
			}
			t.Rows = append(t.Rows, []string{grouped(n), grouped(q.Connections), units.Value((float64(now.Heap)-float64(before.Heap))/float64(n-known), "B")})
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
		u.Cursor, u.Seen, err = s.stored(ctx)
		return err
	})
}

// stored returns the bytes of an agent in the buckets of cursors and of seen agents.
func (s *stand) stored(ctx context.Context) (cursor, seen float64, err error) {
	nc, err := bus.Connect(ctx, bus.Options{URL: s.nats, Name: "loadtest scale"})
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
