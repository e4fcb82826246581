package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
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
