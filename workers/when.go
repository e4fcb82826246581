package workers

import (
	"context"
	"fmt"
	"io"

	"github.com/hookfabric/hookfabric/schema"
)

// A Condition reports whether to call a hook for an event. It gets the status that `when`
// conditions use, and the complete event. It must change neither.
type Condition func(ctx context.Context, s *schema.LoopStatus, e *schema.Event) (bool, error)

// When returns a handler that calls h only if cond is true; otherwise the hook has no
// opinion. Use it for conditions that a `when` in hooks.yaml cannot express. The fabric
// evaluates a `when` before it sends a batch, so a `when` is cheaper.
//
// A condition that returns an error or panics counts as true, so that an error does not
// switch a policy off. The result then has an entry in hook_errors. The condition's time
// counts as the hook's time. A condition that still runs at the deadline means that the
// hook did not answer.
func When(cond Condition, h Handler) Handler { return &conditional{cond: cond, handler: h} }

// conditional is a handler with a condition.
type conditional struct {
	cond    Condition
	handler Handler
}

// Handle evaluates the condition first. If both fail, it returns one error.
func (c *conditional) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	status := e.LoopStatus()
	holds, failure := c.holds(ctx, &status, e)
	switch {
	case ctx.Err() != nil:
		return schema.Result{}, fmt.Errorf("its condition took all its time: %w", context.Cause(ctx))
	case failure == nil && !holds:
		return schema.Result{}, nil
	case failure == nil:
		return c.handler.Handle(ctx, e)
	}
	note := fmt.Errorf("its condition %w, and counts as true", failure)
	res, err := c.handler.Handle(ctx, e)
	if err != nil {
		return res, fmt.Errorf("%w; %w", err, note)
	}
	res.HookErrors = append([]string{note.Error()}, res.HookErrors...)
	return res, nil
}

// holds evaluates the condition, and turns a panic into an error.
func (c *conditional) holds(ctx context.Context, s *schema.LoopStatus, e *schema.Event) (holds bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	if holds, err = c.cond(ctx, s, e); err != nil {
		err = fmt.Errorf("failed: %w", err)
	}
	return holds, err
}

// Close closes the handler, if it can be closed.
func (c *conditional) Close() error {
	if closer, ok := c.handler.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
