// Package deliver keeps the state of agents during their events: it delivers the messages that wait
// for an agent with its verdicts, stores acknowledgements, and warns agents whose rounds are over.
//
// deliverer.go has what an event needs of it. claim.go claims the items that are due and has their
// stages render them, and texts.go and room.go fit them into a verdict. acks.go writes
// acknowledgements, and broken.go remembers items that cannot be rendered. rounds.go reads rounds and
// counts denied calls; keeper.go warns agents whose time is over. drain.go delivers outside of events.
//
// Only this module imports it.
package deliver

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/lifetime"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
)

// Options are the parameters of [New].
type Options struct {
	stores.Memory

	// Active returns the active configuration; nil: no version is active yet.
	Active func() *stages.Config
	// MaxVerdict returns the largest size of a verdict in bytes.
	MaxVerdict func() int
	Life       *lifetime.Lifetime
	Report     *observe.Report
	Logger     *slog.Logger
}

// A Deliverer updates the state of agents at their events.
type Deliverer struct {
	opt    Options
	acks   *acks
	warned sync.Map // of rounds by agent: their starts
	broken broken
}

// New makes a Deliverer. It warns the agents whose time is over until its lifetime ends.
func New(opt Options) *Deliverer {
	s := &Deliverer{opt: opt}
	var write func(context.Context, string, []string) error
	if opt.Queue != nil {
		write = opt.Queue.Ack
	}
	s.acks = newAcks(opt.Life.Context(), write, opt.Report.Log)
	if opt.Rounds != nil {
		opt.Life.Go(s.keep)
	}
	return s
}

// Drain waits until all acknowledgements are written, or ctx ends.
func (s *Deliverer) Drain(ctx context.Context) { s.acks.drain(ctx) }

// Notice records that the agent of an event is active, and its description when its session starts
// or ends.
func (s *Deliverer) Notice(r *schema.Routing, body []byte) {
	if s.opt.Queue != nil {
		s.opt.Queue.Seen(r.Agent, r.Session, r.Tool)
	}
	if s.opt.Sessions == nil {
		return
	}
	if r.Event == schema.SessionEnd {
		s.opt.Sessions.Describe(sessions.Agent{Agent: r.Agent, Session: r.Session, Ended: true})
		return
	}
	if r.Event == schema.SessionStart {
		if e, err := schema.DecodeEvent(body, *r); err == nil {
			s.opt.Sessions.Describe(sessions.Agent{Agent: r.Agent, Session: r.Session, Runtime: e.Runtime,
				Version: e.Labels[schema.LabelVersion], Host: e.Labels[schema.LabelHost]})
		}
	}
	s.opt.Sessions.Seen(r.Agent, r.Session)
}

// Concerns reports whether the stored state of an agent matters for an event without a worker to
// ask. It runs for every such event and therefore does not allocate.
func (s *Deliverer) Concerns(act *stages.Config, plan *dispatch.Plan, req *bus.EventRequest) bool {
	q := s.opt.Queue
	if req.Event == schema.SessionStart && q != nil && act.Defers(req.Agent) {
		return true
	}
	if q != nil && (len(req.Acks) > 0 || delivers(plan, req.Event) && s.brings(&req.Routing, req.Attempt)) {
		return true
	}
	if act.Observer(plan, req.Event, req.Tool) != nil {
		return true
	}
	if s.opt.Rounds == nil {
		return false
	}
	r, ok := s.opt.Rounds.Get(req.Agent)
	switch {
	case !ok:
		return false
	case r.Terminate:
		return true
	case len(plan.Gates) > 0:
		return r.Blocked() || r.Denials > 0
	}
	return len(plan.Deliver) > 0 && r.SoftDue()
}

// Remember updates the agent's stored state for a verdict, and adds the agent's messages to it. A
// failure does not change the decision.
func (s *Deliverer) Remember(act *stages.Config, plan *dispatch.Plan, req *dispatch.Request, acks []string, v *schema.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			bus.InTrace(s.opt.Logger, req.Trace).Error("delivering panicked", "event_id", req.ID, "agent", req.Agent, "panic", p, "stack", string(debug.Stack()))
			v.HookErrors = append(v.HookErrors, fmt.Sprintf("the agent's messages could not be delivered: %v", p))
		}
	}()
	if o := act.Observer(plan, req.Event, req.Tool); o != nil {
		s.observe(o, req)
	}
	s.startGrace(req.Agent, acks)
	if req.Event == schema.SessionStart && s.opt.Queue != nil && act.Defers(req.Agent) {
		ctx, cancel := s.opt.Life.ForCall(req.Deadline)
		s.Release(ctx, req.Agent, req.Session)
		cancel()
	}
	var rest []string
	if len(acks) > 0 && s.opt.Queue != nil {
		v.Acked, rest = s.acks.sorted(req.Agent, acks)
	}
	if !s.deliver(act, plan, req, rest, v) && len(rest) > 0 {
		s.acks.later(req.Agent, rest)
	}
	s.ended(plan, req, v)
}

// Release records that the agent, or one of its sessions, starts again. If that takes too long, it
// continues in the background.
func (s *Deliverer) Release(ctx context.Context, agent, session string) {
	if s.opt.Queue == nil {
		return
	}
	if err := s.opt.Life.TryWrite(ctx, func(ctx context.Context) error { return s.Checkpoint(ctx, agent, session) }); err != nil {
		s.opt.Report.Log.Unreachable(observe.QueueStore, err)
	}
}

// Checkpoint records that the agent, or one of its sessions, starts again. The items accepted
// before, by any broker, are then no longer deferred. For a session it writes only if items wait.
func (s *Deliverer) Checkpoint(ctx context.Context, agent, session string) error {
	q := s.opt.Queue
	if err := q.Current(ctx); err != nil {
		return err
	}
	if session != "" && !q.Due(agent, session, "") {
		return nil
	}
	last := q.Last()
	return q.Note(ctx, agent, session, func(p *schema.Peers) { p.Checkpoint = max(p.Checkpoint, last) })
}

// observe passes a tool's result to a stage, and stores what the stage notes.
func (s *Deliverer) observe(o stages.Observer, req *dispatch.Request) {
	q := s.opt.Queue
	e, err := schema.DecodeEvent(req.Body, req.Routing)
	if q == nil || err != nil {
		return // no stage needs this body
	}
	peers := q.Peers(req.Agent, req.Session)
	if known := peers.Clone(); !o.Observe(e, &known) {
		return
	}
	ctx, cancel := s.opt.Life.ForCall(req.Deadline)
	defer cancel()
	err = s.opt.Life.TryWrite(ctx, func(ctx context.Context) error {
		return q.Note(ctx, req.Agent, req.Session, func(p *schema.Peers) { o.Observe(e, p) })
	})
	if err != nil {
		s.opt.Report.Log.Unreachable(observe.QueueStore, err)
	}
}
