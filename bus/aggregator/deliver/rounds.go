package deliver

import (
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/schema"
)

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
