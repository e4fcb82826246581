package scale

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/report/units"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/roles"
)

const (
	// perCrowd is the largest number of connections of one process of agents.
	perCrowd = 2500
	// spareFiles is more than a broker opens besides connections.
	spareFiles = 500
)

// growConnections grows the number of connections, each of an idle agent, and measures calls on
// a few of them. It then kills the broker with most connections.
func (r *run) growConnections(ctx context.Context) (err error) {
	var all stands
	defer func() { err = errors.Join(err, all.stop()) }()
	steps, most := affordable(r.connections)
	one := &series{}
	g := &growth{
		part: "connections", title: "Connections, of which 16 are in use", of: "connections", all: []*series{one},
		note: "16 callers on 16 connections, the others are idle. One hook inside the broker, and delivery.",
	}
	t := result.Table{Title: "What connections take of the broker", Columns: []string{"connections", "to open one, p50", "p99", "opened", "broker's CPU for each", "heap for each", "memory for each", "goroutines"}}
	if len(steps) < len(r.connections) {
		t.Note = fmt.Sprintf("This machine allows a process %d open files, which limits the number of connections.", most)
		r.report.Notes = append(r.report.Notes, "connections: "+t.Note)
	}
	for _, n := range steps {
		s, err := r.bare(ctx, fmt.Sprintf("connections-%d", n), delivering())
		if err != nil {
			return err
		}
		all = append(all, s)
		row, err := s.connect(ctx, n, r.report)
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, row)
		r.Say("connections: %s are open", grouped(n))
		few := min(n, bench.Many)
		one.steps = append(one.steps, step{counted(n, "connection", "connections"), n, s, roles.CrowdRequest{Agents: few, Connections: few, Tool: tool, Hooks: 1, Window: r.window(few)}})
	}
	r.report.Tables = append(r.report.Tables, t)
	if err := r.measure(ctx, g); err != nil {
		return err
	}
	return all[len(all)-1].storm(ctx, steps[len(steps)-1], r.report)
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

// connect opens n connections, from several processes, and returns what they take.
func (s *stand) connect(ctx context.Context, n int, r *Report) (row []string, err error) {
	before, err := look(ctx, s.broker)
	if err != nil {
		return nil, err
	}
	for i := 0; i*perCrowd < n; i++ {
		c, err := s.crew.Start(ctx, roles.Crowd, roles.CrowdConfig{NATS: s.nats, Prefix: fmt.Sprintf("agent-%d-", i), Host: uint8(i + 1)}, nil)
		if err != nil {
			return nil, err
		}
		s.crowds = append(s.crowds, c)
	}
	s.crowd = s.crowds[0]
	var last measure.Figures
	began := time.Now()
	for i, c := range s.crowds {
		if err := c.Ask(ctx, roles.CrowdRequest{Open: min(perCrowd, n-i*perCrowd)}, &last); err != nil {
			return nil, err
		}
	}
	took := time.Since(began)
	after, err := look(ctx, s.broker)
	if err != nil {
		return nil, err
	}
	each := func(a, b float64) float64 { return (b - a) / float64(n) }
	cpu := after.Before.Since(before.After).CPU.Std().Seconds() / float64(n)
	r.Units.Connection, r.Units.Connect = each(before.Resident, after.Resident), cpu
	name := "connections: " + counted(n, "connection", "connections")
	r.add(name+", memory of the broker for each", "B", r.Units.Connection)
	r.add(name+", CPU of the broker to open one", "s", cpu)
	return []string{
		grouped(n), units.Value(last.P50.Std().Seconds(), "s"), units.Value(last.P99.Std().Seconds(), "s"), units.Value(float64(n)/took.Seconds(), "/s"),
		units.Value(cpu, "s"), units.Value(each(float64(before.Heap), float64(after.Heap)), "B"), units.Value(r.Units.Connection, "B"), grouped(after.Goroutines),
	}, nil
}

// storm kills the broker, restarts it, and waits until each agent has an answer.
func (s *stand) storm(ctx context.Context, n int, r *Report) error {
	if err := s.broker.Kill(); err != nil {
		return fmt.Errorf("killing the broker: %w", err)
	}
	began := time.Now()
	told := make([]measure.Figures, len(s.crowds))
	g, stormCtx := errgroup.WithContext(ctx)
	for i, c := range s.crowds {
		g.Go(func() error {
			return c.Ask(stormCtx, roles.CrowdRequest{Back: true, Tool: tool, Hooks: 1}, &told[i])
		})
	}
	if err := s.up(ctx); err != nil {
		return errors.Join(err, g.Wait())
	}
	ready := time.Since(began)
	if err := g.Wait(); err != nil {
		return fmt.Errorf("after the broker was killed: %w", err)
	}
	after, err := look(ctx, s.broker)
	if err != nil {
		return err
	}
	t := result.Table{Title: "The broker was killed and restarted", Columns: []string{"connections", "the broker was ready after", "half of all agents were answered after", "99 % of them", "all", "broker's CPU for each"}}
	var slowest measure.Figures
	for _, one := range told {
		if one.Most > slowest.Most {
			slowest = one
		}
	}
	cpu := after.Before.CPU.Std().Seconds() / float64(n)
	row := []string{grouped(n)}
	for _, seconds := range []float64{ready.Seconds(), slowest.P50.Std().Seconds(), slowest.P99.Std().Seconds(), slowest.Most.Std().Seconds(), cpu} {
		row = append(row, units.Value(seconds, "s"))
	}
	t.Rows = append(t.Rows, row)
	t.Note = "Times from the kill until an agent's event was judged. An agent without an answer asks again with its next tool call, after 2.5 to 7.5 s. The quantiles are those of the slowest process of agents."
	r.Tables = append(r.Tables, t)
	r.Units.Return = cpu
	c := r.Check(fmt.Sprintf("every agent got an answer after the broker was killed, within %v", stormBudget))
	c.Seen, c.Least = int64(n), 1
	if slowest.Most.Std() > stormBudget {
		c.Fail(fmt.Sprintf("the last of %d was answered after %v", n, slowest.Most))
	}
	r.add(fmt.Sprintf("connections: all of %s answered again after a kill of the broker", grouped(n)), "s", slowest.Most.Std().Seconds())
	return nil
}

// stormBudget is the longest time until all agents have answers again.
const stormBudget = 60 * time.Second
