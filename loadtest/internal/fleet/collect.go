package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// collectEvery is the interval between tries. collecting limits their total time: until
	// the lease of the last killed process has ended, and some more.
	collectEvery = time.Second
	collecting   = lease + lease/3
)

// left is what a load may have left in an external fabric.
type left struct {
	agents   int
	url, tag string
}

func (l left) String() string {
	return fmt.Sprintf("CAREFUL: the fabric at %s may still hold messages for %d agents of this run, whose names begin with agent-%s; `broker pending --nats %s` lists them.",
		l.url, l.agents, l.tag, l.url)
}

// leaves records the agents for which an external fabric may still hold items.
func (r *run) leaves(agents []string) {
	if r.Scenario.Fabric.Kind == field.External && len(agents) > 0 {
		r.left = left{agents: len(agents), url: r.field.URL(), tag: r.tag}
	}
}

// collect makes the agents take the items that an external fabric still holds for them:
// those that killed processes had claimed. No other run has agents of these names, so the
// items would stay in the fabric.
func (r *run) collect(ctx context.Context) error {
	if r.Scenario.Fabric.Kind != field.External {
		return nil
	}
	agents := r.audit.Unsure(r.field.Killed())
	if len(agents) == 0 {
		return nil
	}
	nc, err := bus.Connect(ctx, bus.Options{URL: r.field.URL(), Creds: r.field.Creds(), Name: "loadtest fleet"})
	if err != nil {
		return err
	}
	defer nc.Close()
	for end := time.Now().Add(collecting); ; {
		items, held, err := holds(ctx, nc, agents)
		if err != nil {
			return err
		}
		if len(held) == 0 {
			return nil
		}
		if time.Now().After(end) {
			r.leaves(held)
			return nil
		}
		fmt.Fprintf(r.Live, "collecting %d messages of killed processes for %d agents\n", items, len(held))
		if err := r.sweep(ctx, held); err != nil {
			return err
		}
		if !load.Pause(ctx, collectEvery) {
			return context.Cause(ctx)
		}
		if err := r.read(); err != nil {
			return err
		}
		agents = held
	}
}

// queueEmpty is checked after the last kill.
const queueEmpty = "the queue is empty at the end"

// lastKill kills the broker once more when all messages are delivered: no message that was
// acknowledged may come back. If one does, all agents ask, so that the audit sees it.
func (r *run) lastKill(ctx context.Context) error {
	if err := r.field.Fault(ctx, faults.Fault{Kind: faults.Kill, Member: field.Numbered(field.Broker, 1)}); err != nil {
		return err
	}
	// In a long run, every lease that was not acknowledged ends before the agents ask.
	if !load.Pause(ctx, min(r.Scenario.For.Std()/10, lease+lease/6)) {
		return context.Cause(ctx)
	}
	var agents []string
	for i := range r.Scenario.Agents {
		agents = append(agents, agentName(r.tag, i))
	}
	if err := r.sweep(ctx, agents); err != nil {
		return err
	}
	nc, err := bus.Connect(ctx, bus.Options{URL: r.field.URL(), Creds: r.field.Creds(), Name: "loadtest fleet"})
	if err != nil {
		return err
	}
	defer nc.Close()
	check := report.Check{Name: queueEmpty, Seen: 1, Least: 1}
	for end := time.Now().Add(lease); ; {
		left := schema.PendingAnswer{Total: -1}
		err := roles.Control(ctx, nc, roles.Verb{Verb: schema.VerbPending}, schema.PendingRequest{Limit: 10}, &left)
		if err == nil && left.Total == 0 {
			break
		}
		if time.Now().After(end) {
			check.Fail(fmt.Sprintf("%d messages are left: %v", left.Total, err))
			break
		}
		if !load.Pause(ctx, look) {
			return context.Cause(ctx)
		}
	}
	r.checks.Checks = append(r.checks.Checks, check)
	return r.read()
}

// holds asks a fabric for which of the agents it holds items, and how many.
func holds(ctx context.Context, nc *nats.Conn, agents []string) (items int, held []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lease, fmt.Errorf("the fabric did not list its pending messages within %v", lease))
	defer cancel()
	for _, agent := range agents {
		var a schema.PendingAnswer
		if err := roles.Control(ctx, nc, roles.Verb{Verb: schema.VerbPending, Agent: agent}, schema.PendingRequest{Limit: 1}, &a); err != nil {
			return 0, nil, fmt.Errorf("listing the pending messages of %s: %w", agent, err)
		}
		if a.Total > 0 {
			items += a.Total
			held = append(held, agent)
		}
	}
	return items, held, nil
}
