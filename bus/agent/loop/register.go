package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// A Condition reports whether a hook runs.
type Condition func(ctx context.Context, s *Status) (bool, error)

// A Registration is an unfinished hook. [Registration.Handle] completes it.
type Registration struct {
	loop *Loop
	hook Hook
}

// A Hook is a registered hook.
type Hook struct {
	loop       *Loop
	spec       schema.Hook
	conditions []Condition
	decision   schema.Decision
	reason     string
	value      *valuer
	effects    []Effect
	injections []schema.Injection
	// fault is what is wrong with the registration.
	fault error
}

// On starts the registration of a hook for an event.
func (l *Loop) On(event schema.EventType) *Registration {
	return &Registration{loop: l, hook: Hook{loop: l, spec: schema.Hook{
		Event: event.Canonical(), Type: inProcess, Timeout: schema.DefaultTimeout,
	}}}
}

// inProcess is the kind of hooks that are functions of the agent's own program, and the
// name of their worker in verdicts.
const inProcess = "in-process"

// When adds a condition. The hook runs if all conditions hold. A condition that fails counts as
// true, and the response reports its error.
func (r *Registration) When(c Condition) *Registration {
	r.hook.conditions = append(r.hook.conditions, c)
	return r
}

// Named sets the hook's name in verdicts and errors; default: the event and a number.
func (r *Registration) Named(name string) *Registration {
	r.hook.spec.Name = name
	return r
}

// FailClosed makes a failure of the hook block: deny at PreToolUse and UserPromptSubmit, fail
// at the events of the model and the final response.
func (r *Registration) FailClosed() *Registration {
	r.hook.spec.FailClosed = true
	return r
}

// Within limits the time of all functions of the hook together; default:
// [schema.DefaultTimeout].
func (r *Registration) Within(d time.Duration) *Registration {
	r.hook.spec.Timeout = schema.Duration(d)
	return r
}

// A HandleOption adds to what a hook does.
type HandleOption func(*Hook)

// WithReason sets the reason of the decision, for the model or the error.
func WithReason(reason string) HandleOption { return func(h *Hook) { h.reason = reason } }

// WithEffects adds effects. They happen in order, before the value.
func WithEffects(e ...Effect) HandleOption {
	return func(h *Hook) { h.effects = append(h.effects, e...) }
}

// WithInjection adds a text for the model, with the tool's result or as a user message.
func WithInjection(content string, s schema.Strategy) HandleOption {
	return func(h *Hook) {
		h.injections = append(h.injections, schema.Injection{Content: content, Strategy: s})
	}
}

// WithValue replaces the value of the event, or sets the value of a stop. The table in the
// package comment lists its type.
func WithValue[T Value](v T) HandleOption {
	return func(h *Hook) { h.value = &valuer{kind: kindOf(v), plain: v} }
}

// WithValueFunc is [WithValue] with a function of the current value, which is a copy. For a
// stop, the current value exists only if the event's value has the stop's type. At PreToolUse
// it is a ToolOutcome with the id and name of the call.
func WithValueFunc[T Value](f func(ctx context.Context, s *Status, current T) (T, error)) HandleOption {
	var zero T
	return func(h *Hook) {
		h.value = &valuer{kind: kindOf(zero), absent: f == nil, f: func(ctx context.Context, s *Status, current any) (any, error) {
			c, _ := current.(T)
			return f(ctx, s, c)
		}}
	}
}

// Handle registers the hook with its decision. [Loop.Check] and [Loop.Run] report its faults.
func (r *Registration) Handle(decision schema.Decision, options ...HandleOption) *Hook {
	h := r.hook
	h.conditions = slices.Clone(h.conditions)
	h.decision = h.spec.Event.Plain(decision)
	for _, option := range options {
		option(&h)
	}
	r.loop.mu.Lock()
	defer r.loop.mu.Unlock()
	if h.spec.Name == "" {
		r.loop.named++
		h.spec.Name = fmt.Sprintf("%s-%d", h.spec.Event, r.loop.named)
	}
	if err := h.check(); err != nil {
		h.fault = fmt.Errorf("hook %q: %w", h.spec.Name, err)
	}
	r.loop.hooks = append(r.loop.hooks, &h)
	return &h
}

// Reject registers a hook that ends the query with an error for this reason.
func (r *Registration) Reject(reason string) *Hook {
	return r.Handle(schema.Fail, WithReason(reason))
}

// Remove removes the hook. Events in progress still run it.
func (h *Hook) Remove() {
	h.loop.mu.Lock()
	defer h.loop.mu.Unlock()
	h.loop.hooks = slices.DeleteFunc(slices.Clone(h.loop.hooks), func(other *Hook) bool { return other == h })
}

// Name returns the hook's name.
func (h *Hook) Name() string { return h.spec.Name }

// check returns all faults of a registration.
func (h *Hook) check() error {
	t, d := h.spec.Event, h.decision
	if !t.Known() {
		_, err := schema.ParseEventType(string(t))
		return err
	}
	if t == schema.SessionStart || t == schema.SessionEnd {
		return fmt.Errorf("no query reaches %s, because a loop has no sessions; write UserPromptSubmit or QueryEnd, or call client.Ask in the program", t)
	}
	var errs []error
	if !t.Permits(d) {
		errs = append(errs, fmt.Errorf("it decides %q; at %s write one of %s", d, t, decisions(t)))
	} else if err := h.checkValue(); err != nil {
		errs = append(errs, err)
	}
	for i := range h.effects {
		if err := h.effects[i].check(); err != nil {
			errs = append(errs, fmt.Errorf("effect %d: %w", i+1, err))
		}
	}
	if slices.ContainsFunc(h.conditions, func(c Condition) bool { return c == nil }) {
		errs = append(errs, errors.New("a condition is nil; write a function, or remove When"))
	}
	if h.value != nil && h.value.absent {
		errs = append(errs, errors.New("its value's function is nil; write one, or WithValue"))
	}
	if h.spec.Timeout <= 0 {
		errs = append(errs, errors.New("Within is not positive; write a duration above 0"))
	}
	for _, in := range h.injections {
		if in.Strategy != "" && !in.Strategy.Known() {
			errs = append(errs, fmt.Errorf("the injection's strategy is %.40q; write tool_result or user_message", in.Strategy))
		}
	}
	return errors.Join(errs...)
}

// checkValue returns what is wrong with the value of a legal decision.
func (h *Hook) checkValue() error {
	t, want := h.spec.Event, valueAt(h.spec.Event, h.decision)
	switch {
	case h.value == nil && h.decision == schema.Stop:
		return fmt.Errorf("it decides stop without a value; at %s a stop carries a %s, by WithValue or WithValueFunc", t, want)
	case h.value == nil || h.value.kind == want:
		return nil
	case want == noValue && t.StopValue() != schema.NoValue:
		return fmt.Errorf("it has a value of type %s; at %s only a stop has a value", h.value.kind, t)
	case want == noValue:
		return fmt.Errorf("it has a value of type %s; at %s hooks have no value", h.value.kind, t)
	}
	with := ""
	if h.decision == schema.Stop {
		with = " of a stop"
	}
	return fmt.Errorf("it has a value of type %s; at %s the value%s is a %s", h.value.kind, t, with, want)
}

// decisions lists the decisions that are legal at t.
func decisions(t schema.EventType) string {
	var names []string
	for _, d := range t.Decisions() {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}
