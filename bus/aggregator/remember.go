package aggregator

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// remember updates the stored state of the agent, and adds its messages to the verdict.
type remember struct{ a *Aggregator }

func (s remember) pass(e *arrival) bool {
	s.a.remember(e.act, e.plan, e.asked, e.req.Acks, &e.verdict)
	return true
}

// maxPassing bounds the writes that run in the background.
const maxPassing = 256

// remember updates the agent's stored state for a verdict, and adds the agent's messages to it. A
// failure does not change the decision.
func (a *Aggregator) remember(act *active, plan *dispatch.Plan, req *dispatch.Request, acks []string, v *schema.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			bus.InTrace(a.opt.Logger, req.Trace).Error("delivering panicked", "event_id", req.ID, "agent", req.Agent, "panic", p, "stack", string(debug.Stack()))
			v.HookErrors = append(v.HookErrors, fmt.Sprintf("the agent's messages could not be delivered: %v", p))
		}
	}()
	if o := act.observer(plan, req.Event, req.Tool); o != nil {
		a.observe(o, req)
	}
	a.acknowledged(req.Agent, acks)
	if req.Event == schema.SessionStart && a.opt.Memory.Queue != nil && act.defers(req.Agent) {
		ctx, cancel := a.budgeted(req.Deadline)
		a.release(ctx, req.Agent, req.Session)
		cancel()
	}
	var rest []string
	if len(acks) > 0 && a.opt.Memory.Queue != nil {
		v.Acked, rest = a.memory.acks.sorted(req.Agent, acks)
	}
	if !a.deliver(act, plan, req, rest, v) && len(rest) > 0 {
		a.memory.acks.later(req.Agent, rest)
	}
	a.ended(plan, req, v)
}

// defers reports whether some stage of the agent defers items until the agent starts again.
func (act *active) defers(agent string) bool {
	if act == nil || !slices.ContainsFunc(act.stages, func(s staged) bool { return s.defers }) {
		return false
	}
	return slices.ContainsFunc(act.deliverers(agent), func(hook int) bool { return act.stages[hook].defers })
}

// release records that the agent, or one of its sessions, starts again. If that takes too long, it
// continues in the background.
func (a *Aggregator) release(ctx context.Context, agent, session string) {
	q := a.opt.Memory.Queue
	if q == nil {
		return
	}
	if err := startsAgain(ctx, q, agent, session); err != nil {
		a.report.Log.Unreachable(observe.QueueStore, err)
		a.background(func(ctx context.Context) error { return startsAgain(ctx, q, agent, session) })
	}
}

// observer returns the stage that observes the tool's result; nil: none.
func (act *active) observer(plan *dispatch.Plan, t schema.EventType, tool string) Observer {
	if t != schema.PostToolUse {
		return nil
	}
	for _, hook := range plan.Deliver {
		if o := act.stages[hook].observer; o != nil && o.Observes(tool) {
			return o
		}
	}
	return nil
}

// observe passes a tool's result to a stage, and stores what the stage notes.
func (a *Aggregator) observe(o Observer, req *dispatch.Request) {
	q := a.opt.Memory.Queue
	e, err := schema.DecodeEvent(req.Body, req.Routing)
	if q == nil || err != nil {
		return // no stage needs this body
	}
	peers := q.Peers(req.Agent, req.Session)
	if known := peers.Clone(); !o.Observe(e, &known) {
		return
	}
	note := func(ctx context.Context) error {
		return q.Note(ctx, req.Agent, req.Session, func(p *schema.Peers) { o.Observe(e, p) })
	}
	ctx, cancel := a.budgeted(req.Deadline)
	defer cancel()
	if err := note(ctx); err != nil {
		a.report.Log.Unreachable(observe.QueueStore, err)
		a.background(note)
	}
}

// background runs do in the background, unless too much waits already.
func (a *Aggregator) background(do func(context.Context) error) {
	select {
	case a.memory.passing <- struct{}{}:
	default:
		return
	}
	a.life.beside(func() {
		defer func() { <-a.memory.passing }()
		ctx, cancel := context.WithTimeout(a.life.ctx, ackTime)
		defer cancel()
		if err := do(ctx); err != nil {
			a.opt.Logger.Warn("a change of an agent's state could not be stored", "error", err)
		}
	})
}
