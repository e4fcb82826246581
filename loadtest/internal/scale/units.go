package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// units measures the other costs of the model: a call that matches no hook, the bytes of a
// call on the network, and the rate of writes of one stream.
func (r *run) units(ctx context.Context) error {
	return errors.Join(r.wires(ctx), r.disk(ctx))
}

// wires measures one call of each kind, and its bytes to the agents and to the workers. These
// connect through links, which count the bytes.
func (r *run) wires(ctx context.Context) (err error) {
	f, err := r.start(ctx, "units", hooksYAML([]string{hookYAML("local", "local", schema.DefaultPool), hookYAML("remote", remote, remote)}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Stop()) }()
	var links [2]*faults.Link
	for i := range links {
		if links[i], err = faults.NewLink(strings.TrimPrefix(f.URL(), "nats://")); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, links[i].Close()) }()
	}
	return r.count(ctx, f, links[0], links[1])
}

func (r *run) count(ctx context.Context, f *bench.Fabric, agents, workers *faults.Link) (err error) {
	crew := r.Crew.Like() // it ends before the links
	defer func() { err = errors.Join(err, crew.Stop()) }()
	worker, err := crew.Start(ctx, roles.HookWorker, roles.WorkerConfig{NATS: "nats://" + workers.Addr(), Pool: remote}, nil)
	if err != nil {
		return err
	}
	f.Measured(roles.HookWorker, worker)
	counted, err := crew.Start(ctx, roles.Requester, roles.Places{Fabric: "nats://" + agents.Addr()}, nil)
	if err != nil {
		return err
	}
	t := report.Table{Title: "What one call takes", Columns: []string{"call", "on the wire to the agent", "on the wire to the worker", "broker's CPU", "worker's CPU"}, Note: "Bytes in both directions, above TCP, for an event of 1 KiB. CPU time with 16 callers, as in a busy fabric."}
	u := &r.report.Units
	for _, c := range []struct {
		name   string
		target roles.Target
		keep   func(broker, worker, toAgent, toWorker float64)
	}{
		{"no hook matches", target("none", 0), func(broker, _, toAgent, _ float64) { u.Call, u.Wire = broker, toAgent }},
		{"1 hook inside broker", target("local", 1), func(broker, _, _, _ float64) { u.LocalCall = broker }},
		{"1 hook of a remote pool", target(remote, 1), func(broker, worker, _, toWorker float64) {
			u.RemoteCall, u.WorkerCall, u.WorkerWire = broker, worker, toWorker
		}},
	} {
		if err := counted.Ask(ctx, roles.Request{Target: c.target}, nil); err != nil {
			return err
		}
		toAgents, toWorkers := agents.Bytes(), workers.Bytes()
		var all load.Figures
		if err := counted.Ask(ctx, roles.Request{Target: c.target, Window: r.window(bench.Many)}, &all); err != nil {
			return err
		}
		toAgent, toWorker := float64(agents.Bytes()-toAgents)/float64(all.Asked), float64(workers.Bytes()-toWorkers)/float64(all.Asked)
		if err := f.Ready(ctx, c.target); err != nil {
			return err
		}
		got, err := f.Measure(ctx, c.target, r.window(bench.Many)) // on a direct connection
		if err != nil {
			return err
		}
		broker, worker := bench.CPUOf(roles.Broker)(got), bench.CPUOf(roles.HookWorker)(got)
		c.keep(broker, worker, toAgent, toWorker)
		t.Rows = append(t.Rows, []string{c.name, bytes(toAgent), bytes(toWorker), seconds(broker), seconds(worker)})
		r.report.add("units: "+c.name+", bytes on the wire to the agent", "B", toAgent)
		r.report.add("units: "+c.name+", broker's CPU with 16 callers", "s", broker)
	}
	r.report.Tables = append(r.report.Tables, t)
	return nil
}

// disk measures the rate of one stream whose writes are on the disk before they are
// acknowledged.
func (r *run) disk(ctx context.Context) (err error) {
	f, err := r.Start(ctx, "disk", "presets: [delivery]\n", roles.BrokerConfig{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Stop()) }()
	client, err := f.Crew.Start(ctx, roles.QueueClient, roles.QueueConfig{NATS: f.URL(), Replicas: 1}, nil)
	if err != nil {
		return err
	}
	t := report.Table{Title: "Writes of one stream, each on the disk before it is acknowledged", Columns: []string{"writers", "a bare key", "p50", "an item of the queue", "p50"}}
	for _, n := range []int{1, fillers} {
		const most = 2000
		calls := min(most, 20*n*r.Times(10, 1)+10)
		row := []string{counted(n, "writer", "writers")}
		for _, do := range []string{roles.Put, roles.Enqueue} {
			var got roles.QueueFigures
			if err := client.Ask(ctx, roles.QueueRequest{Do: do, Callers: n, Calls: calls, Prefix: fmt.Sprintf("w%d-", n), Agents: calls}, &got); err != nil {
				return err
			}
			row = append(row, perSecond(got.PerSecond), seconds(got.P50.Std().Seconds()))
			r.report.Figures = append(r.report.Figures, report.Figured(fmt.Sprintf("units: %s, %s", do, counted(n, "writer", "writers")), "/s", report.Higher, []float64{got.PerSecond}))
			if do == roles.Enqueue {
				r.report.Units.Writes = got.PerSecond
			}
		}
		t.Rows = append(t.Rows, row)
	}
	r.report.Tables = append(r.report.Tables, t)
	return nil
}
