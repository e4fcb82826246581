package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/state"
	"github.com/hookfabric/hookfabric/schema"
)

// units measures the other costs of the model: a call that matches no hook, the bytes of a
// call on the network, and the rate of writes of one stream.
func (r *run) units(ctx context.Context) error {
	hooks := hooksYAML([]string{hookYAML("local", "local", schema.DefaultPool), hookYAML("remote", remote, remote)})
	err := r.with(ctx, "units", hooks, func(s *stand) error { return r.wires(ctx, s) })
	return errors.Join(err, r.disk(ctx))
}

// wires measures one call of each kind, and its bytes to the agents and to the workers.
func (r *run) wires(ctx context.Context, s *stand) error {
	agents, err := openWire(s.nats)
	if err != nil {
		return err
	}
	workers, err := openWire(s.nats)
	if err != nil {
		return errors.Join(err, agents.close())
	}
	crew := r.Crew.Like()
	err = r.count(ctx, s, crew, agents, workers)
	return errors.Join(err, crew.Stop(), agents.close(), workers.close())
}

func (r *run) count(ctx context.Context, s *stand, crew *proc.Crew, agents, workers *wire) (err error) {
	if s.worker, err = crew.Start(ctx, roles.HookWorker, roles.WorkerConfig{NATS: workers.url(), Pool: remote}, nil); err != nil {
		return err
	}
	crowd, err := crew.Start(ctx, roles.Crowd, roles.CrowdConfig{NATS: agents.url(), Prefix: "agent-"}, nil)
	if err != nil {
		return err
	}
	if err := crowd.Ask(ctx, roles.CrowdRequest{Open: 1}, nil); err != nil {
		return err
	}
	t := result.Table{Title: "What one call takes", Columns: []string{"call", "on the wire to the agent", "on the wire to the worker", "broker's CPU", "worker's CPU"}, Note: "Bytes in both directions, above TCP, for an event of 1 KiB. CPU time with 16 callers, as in a busy fabric."}
	u := &r.report.Units
	for _, c := range []struct {
		name string
		q    roles.CrowdRequest
		keep func(broker, worker, toAgent, toWorker float64)
	}{
		{"no hook matches", roles.CrowdRequest{Tool: "none"}, func(broker, _, toAgent, _ float64) { u.Call, u.Wire = broker, toAgent }},
		{"1 hook inside broker", roles.CrowdRequest{Tool: "local", Hooks: 1}, func(broker, _, _, _ float64) { u.LocalCall = broker }},
		{"1 hook of a remote pool", roles.CrowdRequest{Tool: remote, Hooks: 1}, func(broker, worker, _, toWorker float64) {
			u.RemoteCall, u.WorkerCall, u.WorkerWire = broker, worker, toWorker
		}},
	} {
		if err := crowd.Ask(ctx, c.q, nil); err != nil {
			return err
		}
		agents.bytes.Store(0)
		workers.bytes.Store(0)
		c.q.Window = r.window(bench.Many)
		var told measure.Figures
		if err := crowd.Ask(ctx, c.q, &told); err != nil {
			return err
		}
		toAgent, toWorker := float64(agents.bytes.Load())/float64(told.Asked), float64(workers.bytes.Load())/float64(told.Asked)
		if err := s.ready(ctx, c.q); err != nil {
			return err
		}
		got, err := s.ask(ctx, c.q) // on a direct connection
		if err != nil {
			return err
		}
		broker, worker := bench.CPUOf(roles.Broker)(got), bench.CPUOf(roles.HookWorker)(got)
		c.keep(broker, worker, toAgent, toWorker)
		t.Rows = append(t.Rows, []string{c.name, units.Value(toAgent, "B"), units.Value(toWorker, "B"), units.Value(broker, "s"), units.Value(worker, "s")})
		r.report.add("units: "+c.name+", bytes on the wire to the agent", "B", toAgent)
		r.report.add("units: "+c.name+", broker's CPU with 16 callers", "s", broker)
	}
	r.report.Tables = append(r.report.Tables, t)
	return nil
}

// disk measures the rate of one stream whose writes are on the disk before they are
// acknowledged.
func (r *run) disk(ctx context.Context) error {
	s, err := r.bare(ctx, "disk", "presets: [delivery]\n")
	if err != nil {
		return err
	}
	return errors.Join(r.written(ctx, s), s.crew.Stop())
}

func (r *run) written(ctx context.Context, s *stand) error {
	if err := s.broker.Stop(); err != nil {
		return err
	}
	s.config.Sync = 0 // every write
	if err := s.up(ctx); err != nil {
		return err
	}
	teller, err := s.crew.Start(ctx, state.Teller, state.TellerConfig{NATS: s.nats, Replicas: 1}, nil)
	if err != nil {
		return err
	}
	t := result.Table{Title: "Writes of one stream, each on the disk before it is acknowledged", Columns: []string{"writers", "a bare key", "p50", "an item of the queue", "p50"}}
	for _, n := range []int{1, fillers} {
		const most = 2000
		calls := min(most, 20*n*r.Times(10, 1)+10)
		row := []string{counted(n, "writer", "writers")}
		for _, do := range []string{state.Put, state.Enqueue} {
			var told state.Told
			if err := teller.Ask(ctx, state.Telling{Do: do, Callers: n, Calls: calls, Prefix: fmt.Sprintf("w%d-", n), Agents: calls}, &told); err != nil {
				return err
			}
			row = append(row, units.Value(told.PerSecond, "/s"), units.Value(told.P50.Std().Seconds(), "s"))
			r.report.Figures = append(r.report.Figures, result.Figured(fmt.Sprintf("units: %s, %s", do, counted(n, "writer", "writers")), "/s", result.Higher, []float64{told.PerSecond}))
			if do == state.Enqueue {
				r.report.Units.Writes = told.PerSecond
			}
		}
		t.Rows = append(t.Rows, row)
	}
	r.report.Tables = append(r.report.Tables, t)
	return nil
}

// A wire is a proxy in front of the broker that counts bytes.
type wire struct {
	to    string
	l     net.Listener
	bytes atomic.Int64
	all   errgroup.Group
}

func openWire(nats string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the counted connections: %w", err)
	}
	w := &wire{to: strings.TrimPrefix(nats, "nats://"), l: l}
	w.all.Go(w.serve)
	return w, nil
}

func (w *wire) url() string { return "nats://" + w.l.Addr().String() }

// close waits until both ends of every connection are closed.
func (w *wire) close() error {
	_ = w.l.Close()
	return w.all.Wait()
}

func (w *wire) serve() error {
	for {
		from, err := w.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting a connection: %w", err)
		}
		to, err := net.Dial("tcp", w.to)
		if err != nil {
			return errors.Join(fmt.Errorf("connecting to the broker: %w", err), from.Close())
		}
		for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
			w.all.Go(func() error {
				defer way[1].Close()
				_, _ = io.Copy(way[1], io.TeeReader(way[0], counter{&w.bytes})) // either end may close first
				return nil
			})
		}
	}
}

// counter counts the bytes that are written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
