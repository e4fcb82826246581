package python

import (
	"context"
	"fmt"
	"sync"

	"github.com/hookfabric/hookfabric/schema"
)

// handler is a hook with an imported function.
type handler struct {
	runner   *Runner
	pool     *pool
	function *function
	hook     string // the hook's name
	name     string // the function's name in the configuration
	shares   bool   // its calls may run again, so a coroutine may share its host
	closing  sync.Once
}

// Handle calls the function. It calls an idempotent hook again if its host was lost.
func (h *handler) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	if ctx.Err() != nil {
		return schema.Result{}, fmt.Errorf("%q was not called: %w", h.name, context.Cause(ctx))
	}
	event, err := schema.Marshal(e)
	if err != nil {
		return schema.Result{}, fmt.Errorf("the event cannot be written as JSON: %w", err)
	}
	if len(event) > schema.MaxPayload+len(e.History) { // the history has a limit of its own
		return schema.Result{}, fmt.Errorf("the event has %d bytes; a hook gets at most %d", len(event), schema.MaxPayload)
	}
	a, err := h.pool.call(ctx, &call{function: h.function, event: event, alone: !h.shares})
	if err != nil {
		return schema.Result{}, fmt.Errorf("%q %w", h.name, err)
	}
	return h.judge(ctx, e.HookType, a)
}

// judge converts a host's answer to the hook's answer.
func (h *handler) judge(ctx context.Context, t schema.EventType, a answer) (schema.Result, error) {
	if a.Noted != "" {
		h.runner.log.WarnContext(ctx, "hook condition raised an exception and counts as true", "hook", h.hook, "handler", h.name, "traceback", a.Doubt)
	}
	if err := a.fault(); err != nil {
		if a.Traceback != "" {
			h.runner.log.WarnContext(ctx, "hook raised an exception", "hook", h.hook, "handler", h.name, "traceback", a.Traceback)
		}
		return schema.Result{}, fmt.Errorf("%q %w%s", h.name, err, a.besides())
	}
	var res schema.Result
	if len(a.Result) > 0 {
		var err error
		if res, err = schema.DecodeResult(t, a.Result); err != nil {
			return schema.Result{}, fmt.Errorf("%q: %w%s", h.name, err, a.besides())
		}
	}
	if a.Noted != "" {
		res.HookErrors = append([]string{a.Noted}, res.HookErrors...)
	}
	return res, nil
}

// Close releases the function and its pool.
func (h *handler) Close() error {
	h.closing.Do(func() {
		h.pool.forget(h.function)
		h.runner.leave(h.pool)
	})
	return nil
}
