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

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/state"
	"github.com/hookfabric/hookfabric/schema"
)

// writes is how many writes of a key one figure is made of.
const writes = 2000

// units measures what else the model needs: a call that no hook matches, what calls
// take on the wire, and how fast one stream takes writes.
func (o *Options) units(ctx context.Context, r *Report) error {
	hooks := hooksYAML([]string{hookYAML("local", "local", schema.DefaultPool), hookYAML("remote", remote, remote)})
	err := o.with(ctx, "units", hooks, func(s *stand) error { return o.wires(ctx, s, r) })
	return errors.Join(err, o.disk(ctx, r))
}

// wires measures one call of each kind, and what it takes on the wires to the agents
// and to the workers.
func (o *Options) wires(ctx context.Context, s *stand, r *Report) error {
	agents, err := openWire(s.nats)
	if err != nil {
		return err
	}
	workers, err := openWire(s.nats)
	if err != nil {
		return errors.Join(err, agents.close())
	}
	crew := o.Crew.Like()
	err = o.counted(ctx, s, r, crew, agents, workers)
	return errors.Join(err, crew.Stop(), agents.close(), workers.close())
}

func (o *Options) counted(ctx context.Context, s *stand, r *Report, crew *proc.Crew, agents, workers *wire) error {
	worker, err := crew.Start(ctx, roles.HookWorker, roles.WorkerConfig{NATS: workers.url(), Pool: remote}, nil)
	if err != nil {
		return err
	}
	s.worker = worker
	crowd, err := crew.Start(ctx, roles.Crowd, roles.CrowdConfig{NATS: agents.url(), Prefix: "agent-"}, nil)
	if err != nil {
		return err
	}
	if err := crowd.Ask(ctx, roles.CrowdRequest{Open: 1}, nil); err != nil {
		return err
	}
	t := result.Table{Title: "What one call takes", Columns: []string{"call", "on the wire to the agent", "on the wire to the worker", "broker's CPU", "worker's CPU"}, Note: "Bytes in both directions, above TCP, for an event of 1 KiB. CPU time with 16 callers, as in a busy fabric."}
	u := &r.Units
	for _, c := range []struct {
		name, tool               string
		hooks                    int
		broker, worker, at, more *float64
	}{
		{"no hook matches", "none", 0, &u.Call, nil, &u.Wire, nil},
		{"1 hook inside broker", "local", 1, &u.LocalCall, nil, nil, nil},
		{"1 hook of a remote pool", remote, 1, &u.RemoteCall, &u.WorkerCall, nil, &u.WorkerWire},
	} {
		q := roles.CrowdRequest{Tool: c.tool, Hooks: c.hooks}
		if err := crowd.Ask(ctx, q, nil); err != nil {
			return err
		}
		agents.bytes.Store(0)
		workers.bytes.Store(0)
		q.Window = o.window(many)
		var told measure.Figures
		if err := crowd.Ask(ctx, q, &told); err != nil {
			return err
		}
		toAgent, toWorker := float64(agents.bytes.Load())/float64(told.Asked), float64(workers.bytes.Load())/float64(told.Asked)
		if err := s.ready(ctx, q); err != nil {
			return err
		}
		got, err := s.ask(ctx, q) // on a connection without anything in between
		if err != nil {
			return err
		}
		for to, value := range map[*float64]float64{c.broker: got.broker, c.worker: got.worker, c.at: toAgent, c.more: toWorker} {
			if to != nil {
				*to = value
			}
		}
		t.Rows = append(t.Rows, []string{c.name, size(toAgent), size(toWorker), micros(got.broker), micros(got.worker)})
		r.Figures = append(r.Figures, result.Figured("units: "+c.name+", bytes on the wire to the agent", "B", result.Lower, []float64{toAgent}),
			result.Figured("units: "+c.name+", broker's CPU with 16 callers", "s", result.Lower, []float64{got.broker}))
	}
	r.Tables = append(r.Tables, t)
	return nil
}

// disk measures how fast one stream takes writes that are on the disk when they are
// acknowledged.
func (o *Options) disk(ctx context.Context, r *Report) error {
	t := result.Table{Title: "Writes of one stream, each on the disk before it is acknowledged", Columns: []string{"writers", "a bare key", "p50", "an item of the queue", "p50"}}
	s, err := o.bare(ctx, "disk", "presets: [delivery]\n")
	if err != nil {
		return err
	}
	err = errors.Join(s.written(ctx, o, &t, r), s.crew.Stop())
	r.Tables = append(r.Tables, t)
	return err
}

func (s *stand) written(ctx context.Context, o *Options, t *result.Table, r *Report) error {
	// It begins anew, syncing always.
	if err := s.broker.Stop(); err != nil {
		return err
	}
	s.config.Sync = 0
	if err := s.up(ctx); err != nil {
		return err
	}
	teller, err := s.crew.Start(ctx, state.Teller, state.TellerConfig{NATS: s.nats, Replicas: 1}, nil)
	if err != nil {
		return err
	}
	for _, n := range []int{1, fillers} {
		calls := min(writes, 200*n*o.repetitions()/10+10)
		row := []string{counted(n, "writer", "writers")}
		for _, do := range []string{state.Put, state.Enqueue} {
			var told state.Told
			if err := teller.Ask(ctx, state.Telling{Do: do, Callers: n, Calls: calls, Prefix: fmt.Sprintf("w%d-", n), Agents: calls}, &told); err != nil {
				return err
			}
			row = append(row, fmt.Sprintf("%.0f /s", told.PerSecond), micros(told.P50.Std().Seconds()))
			r.Figures = append(r.Figures, result.Figured(fmt.Sprintf("units: %s, %s", do, counted(n, "writer", "writers")), "/s", result.Higher, []float64{told.PerSecond}))
			if do == state.Enqueue {
				r.Units.Writes = told.PerSecond
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return nil
}

// A wire is a way to the broker that counts what passes.
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

// counter counts what is written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
