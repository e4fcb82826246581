package scale

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
)

const (
	// shared is how many connections agents share at most, as they do whose hosts
	// run a daemon.
	shared = 500
	// many is how many callers there are where there is more than one.
	many = 16
)

// delivering is the configuration that most fabrics begin with: delivery, and one
// hook inside the broker. It may run again, for who asks a broker that dies.
func delivering() string {
	return fmt.Sprintf("presets: [delivery]\nhooks:\n  PreToolUse:\n    - {name: audit, matcher: %s, type: builtin, handler: allow, idempotent: true}\n", tool)
}

// agents grows the number of agents that ask in turn.
func (o *Options) agents(ctx context.Context, r *Report) error {
	most := o.Agents[len(o.Agents)-1]
	return o.with(ctx, "agents", delivering(), func(s *stand) error {
		if err := s.crowd.Ask(ctx, roles.CrowdRequest{Open: min(shared, most) - 1}, nil); err != nil {
			return err
		}
		t := result.Table{Title: "What agents take of the broker", Columns: []string{"agents", "connections", "heap for each further agent", "series in /metrics"},
			Note: "The heap is measured after a garbage collection. It includes connections that are used for the first time."}
		g := &growth{part: "agents", title: "Agents that ask in turn", of: "agents", note: fmt.Sprintf("%d callers, one hook inside the broker, and delivery. Up to %d agents have a connection each; more agents share that many. With few connections, one read or write carries several messages, so the first steps are cheaper.", many, shared)}
		one := &series{}
		g.all = []*series{one}
		first, err := look(ctx, s.broker)
		if err != nil {
			return err
		}
		before, known := first, 0
		for _, n := range o.Agents {
			q := roles.CrowdRequest{Agents: n, Connections: min(shared, n), Tool: tool, Hooks: 1, Window: o.window(many)}
			row, now, err := s.settled(ctx, q, before, known)
			if err != nil {
				return err
			}
			t.Rows = append(t.Rows, row)
			before, known = now, n
			one.steps = append(one.steps, s.step(counted(n, "agent", "agents"), n, q))
		}
		r.Units.Agent = max(float64(before.Heap)-float64(first.Heap), 0) / float64(most)
		r.Figures = append(r.Figures, result.Figured(fmt.Sprintf("agents: heap of the broker for each of %s", counted(most, "agent", "agents")), "B", result.Lower, []float64{r.Units.Agent}))
		if err := o.repeated(ctx, g); err != nil {
			return err
		}
		g.tell(r)
		r.Units.FleetCall = one.median(len(one.steps)-1, broker)
		r.Tables = append(r.Tables, t)
		r.Units.Cursor, r.Units.Seen, err = s.kept(ctx)
		return err
	})
}

// kept is how many bytes an agent takes in the buckets of cursors and of who was seen.
func (s *stand) kept(ctx context.Context) (cursor, seen float64, err error) {
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

// settled has every agent ask once and says what the broker takes then, next to what
// it took before of those that were known.
func (s *stand) settled(ctx context.Context, q roles.CrowdRequest, before roles.Settled, known int) ([]string, roles.Settled, error) {
	all := q
	all.Each = true
	if err := s.crowd.Ask(ctx, all, nil); err != nil {
		return nil, before, err
	}
	now, err := look(ctx, s.broker)
	if err != nil {
		return nil, now, err
	}
	series, _, err := s.metrics(ctx)
	return []string{grouped(q.Agents), grouped(q.Connections), size((float64(now.Heap) - float64(before.Heap)) / float64(q.Agents-known)), grouped(series)}, now, err
}
