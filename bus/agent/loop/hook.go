package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// errTime is why a hook's functions are ended.
var errTime = errors.New("the hook's time is up")

// said is what came of running a hook's functions.
type said struct {
	// skipped: a condition did not hold, so that nothing else ran.
	skipped bool
	// notes are what went wrong without being a failure: conditions that failed.
	notes []string
	// value is the hook's, if it has one.
	value any
}

// ask runs the hook within its time. asked is false if a condition did not hold. What
// comes back beside the outcome is its value as it stands, not as JSON.
func (h *Hook) ask(ctx context.Context, m *moment) (o schema.Outcome, value any, asked bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.spec.Timeout.Std(), errTime)
	defer cancel()
	began := time.Now()
	s := m.status()
	answer, err := guarded(ctx, "a function of the hook", func(ctx context.Context) (said, error) { return h.run(ctx, s) })
	s.life.end()
	if answer.skipped {
		return o, nil, false
	}
	o = schema.Outcome{Kind: schema.OK, Took: schema.Duration(time.Since(began)), Worker: inProcess}
	o.Result = schema.Result{Decision: h.decision, Reason: h.reason, Injections: h.injections, HookErrors: answer.notes}
	if err == nil && answer.value != nil {
		err = m.carry(&o.Result, answer.value)
	}
	switch {
	case err == nil:
		return o, answer.value, true
	case errors.Is(context.Cause(ctx), errTime):
		o.Kind, o.Error = schema.Deadline, fmt.Sprintf("did not answer within %v", h.spec.Timeout.Std())
	default:
		o.Kind, o.Error = schema.Errored, first(err.Error(), "it failed without a message")
	}
	// Who failed has decided nothing: it is the failure policy that decides.
	o.Result = schema.Result{HookErrors: answer.notes}
	return o, nil, true
}

// run is the hook's conditions, then its effects, then its value.
func (h *Hook) run(ctx context.Context, s *Status) (said, error) {
	var a said
	for _, c := range h.conditions {
		holds, err := condition(ctx, c, s)
		if err != nil {
			if ctx.Err() != nil {
				return a, context.Cause(ctx)
			}
			a.notes = append(a.notes, fmt.Sprintf("its condition failed and counts as true: %v", err))
			continue
		}
		if !holds {
			a.skipped = true
			return a, nil
		}
	}
	for i := range h.effects {
		if err := h.effects[i].do(ctx, s); err != nil {
			return a, fmt.Errorf("effect %d: %w", i+1, err)
		}
	}
	if h.value == nil {
		return a, nil
	}
	v, err := h.value.make(ctx, s, s.moment.current(h.decision))
	if err != nil {
		return a, fmt.Errorf("its value: %w", err)
	}
	a.value = v
	return a, nil
}

// condition evaluates one condition; a panic is an error.
func condition(ctx context.Context, c Condition, s *Status) (holds bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return c(ctx, s)
}
