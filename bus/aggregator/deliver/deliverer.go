// Package deliver keeps the state of agents during their events: it delivers the messages that wait
// for an agent with its verdicts, stores acknowledgements, and warns agents whose rounds are over.
//
// deliverer.go has what an event needs of it, reads rounds and counts denied calls. claim.go claims the
// items that are due and has their stages render them, and texts.go and room.go fit them into a
// verdict. acks.go writes acknowledgements; keeper.go warns agents whose time is over. drain.go delivers
// outside of events.
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
	"github.com/hookfabric/hookfabric/bus/state/rounds"
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

// Round returns the agent's round; nil: it has none.
func (s *Deliverer) Round(agent string) *schema.Round {
	if s.opt.Rounds == nil {
		return nil
	}
	r, ok := s.opt.Rounds.Get(agent)
	if !ok {
		return nil
	}
	known := r // nothing is put on the heap for agents without a round
	return &known
}

// latest returns an agent's round from the leader. If the leader cannot be asked, it returns the
// round known here and the error. It returns nil if the agent has no round, or if the known one is
// too old.
func (s *Deliverer) latest(ctx context.Context, agent string, known *schema.Round) (*schema.Round, error) {
	if s.opt.Rounds == nil {
		return known, nil
	}
	r, ok, err := s.opt.Rounds.Latest(ctx, agent)
	switch {
	case err != nil && s.opt.Rounds.Ready() != nil:
		return nil, err // the known round may have ended long ago
	case err != nil:
		return known, err
	case !ok:
		return nil, nil
	}
	return &r, nil
}

// LatestForCall is latest within the time that a call has for it.
func (s *Deliverer) LatestForCall(req *dispatch.Request, known *schema.Round) (*schema.Round, error) {
	ctx, cancel := s.opt.Life.ForCall(req.Deadline)
	defer cancel()
	return s.latest(ctx, req.Agent, known)
}

// CountDenied counts a call that a gate refused in a round, and returns the round. If that takes too
// long, or the round is not the leader's for a reason, the call is counted later.
func (s *Deliverer) CountDenied(req *dispatch.Request, round *schema.Round, reason error) *schema.Round {
	agent, start, id := req.Agent, round.Start, req.ID
	counted, err := schema.Round{}, reason
	if err == nil {
		ctx, cancel := s.opt.Life.ForCall(req.Deadline)
		defer cancel()
		counted, err = s.opt.Rounds.Denied(ctx, agent, start, id)
	}
	if err != nil {
		s.opt.Logger.Warn("a denied call could not be counted in time", "agent", agent, "event_id", id, "error", err)
		s.opt.Life.Write(func(ctx context.Context) error {
			_, err := s.opt.Rounds.Denied(ctx, agent, start, id)
			return err
		})
		counted = *round
		counted.Denials++
	}
	return &counted
}

// Terminate adds to a verdict that the agent's run is to end, if it is.
func Terminate(v *schema.Verdict, round *schema.Round) {
	if round.Terminate {
		v.Terminate = &schema.Terminate{Reason: fmt.Sprintf("%d calls in a row were denied after the hard limit of round %d", rounds.MaxDenials, round.Number)}
	}
}

// ended adds to a verdict that the agent's run is to end, unless the call is one
// by which the agent ends it itself. It notes calls that were let through.
func (s *Deliverer) ended(plan *dispatch.Plan, req *dispatch.Request, v *schema.Verdict) {
	round := s.Round(req.Agent)
	if round == nil {
		return
	}
	passed := len(plan.Gates) > 0 && !req.Event.Terminal(v.Decision)
	if passed && round.Denials > 0 {
		agent := req.Agent
		s.opt.Life.Write(func(ctx context.Context) error { return s.opt.Rounds.Passed(ctx, agent) })
	}
	if passed || v.Terminate != nil || !round.Terminate {
		return
	}
	if round, _ = s.LatestForCall(req, round); round != nil { // if the leader does not answer, the round known here counts
		Terminate(v, round)
	}
}

// startGrace starts the grace of the agent's round if its warning went out with one of the events.
func (s *Deliverer) startGrace(agent string, events []string) {
	if len(events) == 0 || s.opt.Rounds == nil {
		return
	}
	if r := s.Round(agent); r != nil && r.SoftDue() {
		s.opt.Life.Write(func(ctx context.Context) error { return s.opt.Rounds.Acked(ctx, agent, events) })
	}
}
