package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
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

const (
	// perHost is the largest number of connections of one process of agents.
	perHost = 2500
	// spareFiles is more than a broker opens besides connections.
	spareFiles = 500
)

// growConnections grows the number of connections, each of an idle agent, and measures calls on
// a few of them. It then kills the broker with most connections.
func (r *run) growConnections(ctx context.Context) (err error) {
	var all []*bench.Fabric
	defer func() { err = errors.Join(err, bench.StopAll(all)) }()
	steps, most := affordable(r.connections)
	one := &series{}
	g := &growth{
		part: "connections", title: "Connections, of which 16 are in use", of: "connections", all: []*series{one},
		note: "16 callers on 16 connections, the others are idle. One hook inside the broker, and delivery.",
	}
	t := report.Table{Title: "What connections take of the broker", Columns: []string{"connections", "to open one, p50", "p99", "opened", "broker's CPU for each", "heap for each", "memory for each", "goroutines"}}
	if len(steps) < len(r.connections) {
		t.Note = fmt.Sprintf("This machine allows a process %d open files, which limits the number of connections.", most)
		r.report.Notes = append(r.report.Notes, "connections: "+t.Note)
	}
	var last []*proc.Child
	for _, n := range steps {
		f, err := r.bare(ctx, fmt.Sprintf("connections-%d", n), delivering())
		if err != nil {
			return err
		}
		all = append(all, f)
		var row []string
		if last, row, err = r.connect(ctx, f, n); err != nil {
			return err
		}
		t.Rows = append(t.Rows, row)
		r.Say("connections: %s are open", grouped(float64(n)))
		at, few := target(tool, 1), min(n, bench.Many)
		at.Agents, at.Connections = few, few
		one.steps = append(one.steps, step{counted(n, "connection", "connections"), n, f, at, r.window(few)})
	}
	r.report.Tables = append(r.report.Tables, t)
	if err := r.measure(ctx, g); err != nil {
		return err
	}
	return r.storm(ctx, all[len(all)-1], last, steps[len(steps)-1])
}

// affordable returns the steps for which a process may open enough files, and that limit.
func affordable(all []int) (steps []int, most int) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return all, 0
	}
	for _, n := range all {
		if uint64(n+spareFiles) <= l.Max { // the Go runtime raises the limit to this
			steps = append(steps, n)
		}
	}
	return steps, int(min(l.Max, 1<<30))
}

// connect opens n connections, from several processes, and returns these and what the
// connections take.
func (r *run) connect(ctx context.Context, f *bench.Fabric, n int) (hosts []*proc.Child, row []string, err error) {
	before, err := bench.Settle(ctx, f.Broker)
	if err != nil {
		return nil, nil, err
	}
	var last load.Figures
	began := time.Now()
	for left := n; left > 0; left -= perHost {
		c, err := f.Crew.Start(ctx, roles.Requester, roles.Places{Fabric: f.URL(), Host: uint8(len(hosts) + 1)}, nil)
		if err != nil {
			return nil, nil, err
		}
		hosts = append(hosts, c)
		if err := c.Ask(ctx, roles.Request{Open: min(perHost, left) - 1}, &last); err != nil {
			return nil, nil, err
		}
	}
	f.Requester = hosts[0]
	took := time.Since(began)
	after, err := bench.Settle(ctx, f.Broker)
	if err != nil {
		return nil, nil, err
	}
	each := func(a, b uint64) float64 { return (float64(b) - float64(a)) / float64(n) }
	u := &r.report.Units
	u.Connection, u.Connect = each(before.Resident, after.Resident), after.Before.Since(before.After).CPU.Std().Seconds()/float64(n)
	name := "connections: " + counted(n, "connection", "connections")
	r.report.add(name+", memory of the broker for each", "B", u.Connection)
	r.report.add(name+", CPU of the broker to open one", "s", u.Connect)
	return hosts, []string{
		grouped(float64(n)), seconds(last.P50.Std().Seconds()), seconds(last.P99.Std().Seconds()), perSecond(float64(n) / took.Seconds()),
		seconds(u.Connect), bytes(each(before.Heap, after.Heap)), bytes(u.Connection), grouped(float64(after.Goroutines)),
	}, nil
}

// storm kills the broker, restarts it, and waits until each agent has an answer.
func (r *run) storm(ctx context.Context, f *bench.Fabric, hosts []*proc.Child, n int) error {
	if err := f.Broker.Kill(); err != nil {
		return fmt.Errorf("killing the broker: %w", err)
	}
	began := time.Now()
	back := make([]load.Figures, len(hosts))
	g, stormCtx := errgroup.WithContext(ctx)
	for i, c := range hosts {
		g.Go(func() error { return c.Ask(stormCtx, roles.Request{Back: true, Target: target(tool, 1)}, &back[i]) })
	}
	if err := f.Up(ctx); err != nil {
		return errors.Join(err, g.Wait())
	}
	ready := time.Since(began)
	if err := g.Wait(); err != nil {
		return fmt.Errorf("after the broker was killed: %w", err)
	}
	after, err := bench.Settle(ctx, f.Broker)
	if err != nil {
		return err
	}
	t := report.Table{Title: "The broker was killed and restarted", Columns: []string{"connections", "the broker was ready after", "half of all agents were answered after", "99 % of them", "all", "broker's CPU for each"}}
	slowest := slices.MaxFunc(back, func(a, b load.Figures) int { return cmp.Compare(a.Most, b.Most) })
	cpu := after.Before.CPU.Std().Seconds() / float64(n)
	row := []string{grouped(float64(n))}
	for _, v := range []float64{ready.Seconds(), slowest.P50.Std().Seconds(), slowest.P99.Std().Seconds(), slowest.Most.Std().Seconds(), cpu} {
		row = append(row, seconds(v))
	}
	t.Rows = append(t.Rows, row)
	t.Note = "Times from the kill until an agent's event was judged. An agent without an answer asks again with its next tool call, after 2.5 to 7.5 s. The quantiles are those of the slowest process of agents."
	r.report.Tables = append(r.report.Tables, t)
	r.report.Units.Return = cpu
	c := r.report.Check(fmt.Sprintf("every agent got an answer after the broker was killed, within %v", stormBudget))
	c.Seen, c.Least = int64(n), 1
	if slowest.Most.Std() > stormBudget {
		c.Fail(fmt.Sprintf("the last of %d was answered after %v", n, slowest.Most))
	}
	r.report.add(fmt.Sprintf("connections: all of %s answered again after a kill of the broker", grouped(float64(n))), "s", slowest.Most.Std().Seconds())
	return nil
}

// stormBudget is the longest time until all agents have answers again.
const stormBudget = 60 * time.Second
