package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// errTime is the cause when a hook's time is up.
var errTime = errors.New("the hook's time is up")

// hookResult is the result of a hook's functions.
type hookResult struct {
	// skipped means that a condition was false, so that nothing else ran.
	skipped bool
	// notes are errors that are not failures of the hook: failed conditions.
	notes []string
	// value is the hook's value, if it has one.
	value any
}

// ask runs the hook within its time. asked is false if a condition was false. value is
// the outcome's value before it is encoded.
func (h *Hook) ask(ctx context.Context, m *moment) (o schema.Outcome, value any, asked bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.spec.Timeout.Std(), errTime)
	defer cancel()
	began := time.Now()
	s := m.status()
	answer, err := guarded(ctx, "a function of the hook", func(ctx context.Context) (hookResult, error) { return h.run(ctx, s) })
	s.life.end()
	if answer.skipped {
		return o, nil, false
	}
	o = schema.Outcome{Kind: schema.OK, Took: schema.Duration(time.Since(began)), Worker: inProcess}
	o.Result = schema.Result{Decision: h.decision, Reason: h.reason, Injections: h.injections, HookErrors: answer.notes}
	if err == nil && answer.value != nil {
		err = m.encodeValue(&o.Result, answer.value)
	}
	switch {
	case err == nil:
		return o, answer.value, true
	case errors.Is(context.Cause(ctx), errTime):
		o.Kind, o.Error = schema.Deadline, fmt.Sprintf("did not answer within %v", h.spec.Timeout.Std())
	default:
		o.Kind, o.Error = schema.Errored, first(err.Error(), "it failed without a message")
	}
	// The result of a hook that failed is dropped, and the failure policy decides.
	o.Result = schema.Result{HookErrors: answer.notes}
	return o, nil, true
}

// run evaluates the hook's conditions, effects and value, in this order.
func (h *Hook) run(ctx context.Context, s *Status) (hookResult, error) {
	var a hookResult
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
	v, err := h.value.make(ctx, s, s.moment.startingValue(h.decision))
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
