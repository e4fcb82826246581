package python

import (
	"context"
	"fmt"
	"sync"

	"github.com/hookfabric/hookfabric/schema"
)

// handler is a hook whose function was imported.
type handler struct {
	runner   *Runner
	pool     *pool
	function *function
	hook     string // the hook's name
	name     string // the function as the configuration calls it
	shares   bool   // its calls may run again, so a coroutine may share its host
	closing  sync.Once
}

// Handle calls the function once, or if its host was lost and it may, again.
func (h *handler) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	if ctx.Err() != nil {
		return schema.Result{}, fmt.Errorf("%q was not called: %w", h.name, context.Cause(ctx))
	}
	event, err := schema.Marshal(e)
	if err != nil {
		return schema.Result{}, fmt.Errorf("the event can not be written as JSON: %w", err)
	}
	if len(event) > schema.MaxPayload+len(e.History) { // which is bounded by itself
		return schema.Result{}, fmt.Errorf("the event has %d bytes; a hook gets at most %d", len(event), schema.MaxPayload)
	}
	a, err := h.pool.call(ctx, &call{function: h.function, event: event, alone: !h.shares})
	if err != nil {
		return schema.Result{}, fmt.Errorf("%q %w", h.name, err)
	}
	return h.judge(ctx, e.HookType, a)
}

// judge turns what a host says into the hook's answer.
func (h *handler) judge(ctx context.Context, t schema.EventType, a answer) (schema.Result, error) {
	if a.Noted != "" {
		h.runner.log.WarnContext(ctx, "a hook's condition raised an exception and counts as true", "hook", h.hook, "handler", h.name, "traceback", a.Doubt)
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

// Close says that the hook needs its function no more.
func (h *handler) Close() error {
	h.closing.Do(func() {
		h.pool.forget(h.function)
		h.runner.leave(h.pool)
	})
	return nil
}
