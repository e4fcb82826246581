package rounds

import (
	"context"
	"fmt"

	"github.com/nats-io/nuid"

	"github.com/hookfabric/hookfabric/schema"
)

// Start begins the agent's next round. All that was counted begins anew.
func (r *Rounds) Start(ctx context.Context, agent string, req *schema.RoundRequest) (schema.Round, error) {
	if err := check(req); err != nil {
		return schema.Round{}, err
	}
	id := nuid.Next()
	rec, changed, err := r.update(ctx, agent, func(now *record) (*record, error) {
		if now != nil && now.ID == id {
			return nil, nil // its answer was lost
		}
		return next(now, req, id), nil
	})
	if err == nil && changed {
		err = r.o.Step(StepStartStored)
	}
	return r.result(agent, rec, err)
}

// next is the round that follows on last, which may be nil.
func next(last *record, req *schema.RoundRequest, id string) *record {
	rec := &record{ID: id, Initial: req.Initial, Subsequent: req.Subsequent, Grace: schema.DefaultGrace}
	if last != nil {
		rec.Number, rec.Grace = last.Number+1, last.Grace
		rec.Initial, rec.Subsequent = or(req.Initial, last.Initial), or(req.Subsequent, last.Subsequent)
	}
	rec.Grace = *or(req.Grace, &rec.Grace)
	rec.Number = *or(req.Number, &rec.Number)
	return rec
}

// or is a, or b where a is absent.
func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// check says what is wrong with a request.
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
		return fmt.Errorf("%w: number is %d; rounds count from 0", ErrInvalid, *req.Number)
	}
	return nil
}

// WrapUp asks the agent to come to an end now. An agent without a round gets one
// without limits. It reports false if that was asked in this round before. Of the
// request only the grace counts; absent: the round keeps its own.
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
		now.WrapUp, now.Grace = true, *or(req.Grace, &now.Grace)
		return now, nil
	})
	if err == nil && changed && began {
		err = r.o.Step(StepStartStored)
	}
	round, err := r.result(agent, rec, err)
	return round, changed, err
}

// Warned notes that the soft warning of the round that began at revision start
// was handed over: its grace begins. For another round, or a second time, it
// changes nothing.
func (r *Rounds) Warned(ctx context.Context, agent string, start uint64) error {
	if err := r.o.Step(StepWarnedBegun); err != nil {
		return err
	}
	_, changed, err := r.update(ctx, agent, func(now *record) (*record, error) {
		if now == nil || now.Start != start || now.Warned {
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

// Denied counts a refused call, once per event, and returns the round as it is
// then. A call that was refused in another round is not counted in this one, and
// when the run is to end, nothing is counted any more.
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

// Passed notes that a call was let through: refused calls before it do not
// count any more. Without such it costs nothing.
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
