package rounds

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nuid"

	"github.com/hookfabric/hookfabric/schema"
)

// Start starts the agent's next round, with new counters.
func (r *Rounds) Start(ctx context.Context, agent string, req *schema.RoundRequest) (schema.Round, error) {
	if err := check(req); err != nil {
		return schema.Round{}, err
	}
	id := nuid.Next()
	rec, changed, err := r.update(ctx, agent, func(now *record) (*record, error) {
		if now != nil && now.ID == id {
			return nil, nil // this write succeeded, and its answer was lost
		}
		return next(now, req, id), nil
	})
	if err == nil && changed {
		err = r.o.Step(StepStartStored)
	}
	return r.result(agent, rec, err)
}

// next returns the round after last, which may be nil.
func next(last *record, req *schema.RoundRequest, id string) *record {
	rec := &record{ID: id, Initial: req.Initial, Subsequent: req.Subsequent, Grace: schema.DefaultGrace}
	if last != nil {
		rec.Number, rec.Grace = last.Number+1, last.Grace
		rec.Initial, rec.Subsequent = cmp.Or(req.Initial, last.Initial), cmp.Or(req.Subsequent, last.Subsequent)
	}
	rec.Grace = *cmp.Or(req.Grace, &rec.Grace)
	rec.Number = *cmp.Or(req.Number, &rec.Number)
	return rec
}

// check returns what is wrong with a request.
func check(req *schema.RoundRequest) error {
	for _, f := range []struct {
		name  string
		value *schema.Duration
	}{{"initial", req.Initial}, {"subsequent", req.Subsequent}, {"grace", req.Grace}} {
		if f.value != nil && *f.value < 0 {
			return fmt.Errorf("%w: %s is %v; write a duration that is not negative, such as 10m, or 0s for at once", ErrInvalid, f.name, *f.value)
		}
	}
	if req.Number != nil && *req.Number < 0 {
		return fmt.Errorf("%w: number is %d; rounds are numbered from 0", ErrInvalid, *req.Number)
	}
	return nil
}

// WrapUp makes the agent's warning due now. An agent without a round gets one without limits. It returns false if the round had that
// before. Only the grace of the request applies; absent: that of the round.
func (r *Rounds) WrapUp(ctx context.Context, agent string, req *schema.RoundRequest) (schema.Round, bool, error) {
	if err := check(req); err != nil {
		return schema.Round{}, false, err
	}
	id, began := nuid.Next(), false
	rec, changed, err := r.update(ctx, agent, func(now *record) (*record, error) {
		if now != nil && now.WrapUp {
			return nil, nil
		}
		if began = now == nil; began {
			now = next(nil, &schema.RoundRequest{}, id)
		}
		now.WrapUp, now.Grace = true, *cmp.Or(req.Grace, &now.Grace)
		return now, nil
	})
	if err == nil && changed && began {
		err = r.o.Step(StepStartStored)
	}
	round, err := r.result(agent, rec, err)
	return round, changed, err
}

// Warned records that the warning of the round that began at revision start was delivered, which begins its grace period. It has no
// effect for another round, or a second time.
func (r *Rounds) Warned(ctx context.Context, agent string, start uint64) error {
	return r.warned(ctx, agent, func(now *record) bool { return now.Start == start })
}

// warned records that for a matching round.
func (r *Rounds) warned(ctx context.Context, agent string, meant func(*record) bool) error {
	if err := r.o.Step(StepWarnedBegun); err != nil {
		return err
	}
	_, changed, err := r.update(ctx, agent, func(now *record) (*record, error) {
		if now == nil || now.Warned || !meant(now) {
			return nil, nil
		}
		now.Warned = true
		return now, nil
	})
	if err == nil && changed {
		err = r.o.Step(StepWarnedStored)
	}
	return err
}

// A Warning is a warning in the verdict about an event, instead of in the queue.
type Warning struct {
	// Start is the revision at which the round began.
	Start uint64
	Event string
	// Lease is how long no other event may deliver it.
	Lease time.Duration
}

// Warn records that the verdict about an event delivers the warning of a round. It reports whether it may, and whether it is the
// first such verdict. It may not if another event delivered it less than a lease ago, if the delivery was acknowledged, or if the
// round has changed.
func (r *Rounds) Warn(ctx context.Context, agent string, w Warning) (may, first bool, err error) {
	w.Event = w.Event[:min(len(w.Event), maxEvent)]
	_, _, err = r.update(ctx, agent, func(now *record) (*record, error) {
		switch may = now != nil && now.Start == w.Start && !now.Warned; {
		case !may || now.WarningEvent == w.Event:
			return nil, nil // or this write succeeded, and its answer was lost
		case now.WarningEvent != "" && r.clock.Age(now.WarningAt) < w.Lease:
			may = false
			return nil, nil
		}
		first = now.WarningEvent == ""
		now.WarningEvent, now.WarningAt = w.Event, time.Time{}
		return now, nil
	})
	return may && err == nil, first && may && err == nil, err
}

// Warning returns the last event that delivered the warning of an agent's round, and how long ago, from the mirror; empty: there was no
// such event.
func (r *Rounds) Warning(agent string) (event string, age time.Duration) {
	rec := r.record(agent)
	if rec == nil || rec.WarningEvent == "" {
		return "", 0
	}
	return rec.WarningEvent, r.clock.Age(rec.WarningAt)
}

// Acked begins the grace period of the agent's round if the last event that delivered its warning is among the acknowledged events.
func (r *Rounds) Acked(ctx context.Context, agent string, events []string) error {
	return r.warned(ctx, agent, func(now *record) bool {
		return now.WarningEvent != "" && slices.ContainsFunc(events, func(e string) bool { return e[:min(len(e), maxEvent)] == now.WarningEvent })
	})
}

// Denied counts a denied call, once per event, and returns the resulting round. It ignores calls of other rounds, and calls after the
// run must end.
func (r *Rounds) Denied(ctx context.Context, agent string, start uint64, event string) (schema.Round, error) {
	if err := r.o.Step(StepDenialBegun); err != nil {
		return schema.Round{}, err
	}
	event = event[:min(len(event), maxEvent)]
	rec, changed, err := r.update(ctx, agent, func(now *record) (*record, error) {
		if now == nil {
			return nil, ErrNone
		}
		if now.Start != start || !now.deny(event) {
			return nil, nil
		}
		return now, nil
	})
	if err == nil && changed {
		err = r.o.Step(StepDenialStored)
	}
	return r.result(agent, rec, err)
}

// Passed resets the count of denied calls after an allowed call. With a count of zero it costs no request.
func (r *Rounds) Passed(ctx context.Context, agent string) error {
	if rec := r.record(agent); rec == nil || len(rec.Denied) == 0 {
		return nil
	}
	_, _, err := r.update(ctx, agent, func(now *record) (*record, error) {
		if now == nil || len(now.Denied) == 0 {
			return nil, nil
		}
		now.Denied = nil
		return now, nil
	})
	return err
}

func (r *Rounds) result(agent string, rec *record, err error) (schema.Round, error) {
	if err != nil || rec == nil {
		return schema.Round{}, err
	}
	return rec.round(agent, &r.clock), nil
}
