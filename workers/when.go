package workers

import (
	"context"
	"fmt"
	"io"

	"github.com/hookfabric/hookfabric/schema"
)

// A Condition says whether a hook has anything to say about an event. It sees
// the event as conditions see it, and whole; it must change neither.
type Condition func(ctx context.Context, s *schema.LoopStatus, e *schema.Event) (bool, error)

// When makes a handler that is asked only where its condition is true; elsewhere
// the hook has no opinion. It is for what no `when` of a configuration can
// say, and it costs what asking the hook costs: a `when` is looked at before
// anything is sent.
//
// A condition that fails, by an error or a panic, counts as true, as a `when`
// does: a policy is not switched off by an error. The answer says so in its
// hook_errors. The time that a condition takes is the hook's own; one that is
// still running at the deadline means that the hook did not answer.
func When(cond Condition, h Handler) Handler { return &conditional{cond: cond, handler: h} }

// conditional is a handler with a condition of its own.
type conditional struct {
	cond    Condition
	handler Handler
}

// Handle looks at the condition first. A failure of both is told as one.
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

// holds asks the condition, and turns a panic into an error.
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
