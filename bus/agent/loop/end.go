package loop

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// end runs QueryEnd, once and after everything else.
func (r *run) end(ctx context.Context, e *ending) (Response, error) {
	out := Response{Message: e.message, Status: e.how, Reason: e.reason, Iterations: r.iteration}
	if e.message != nil {
		out.Content = e.message.Content
	}
	if e.err != nil {
		out.Error = e.err.Error()
	}
	out.HookErrors = slices.Clone(r.errors)
	ctx, cancel := outlive(ctx, r.loop.opt.EndTimeout)
	defer cancel()
	err := e.err
	func() {
		defer func() {
			if p := recover(); p != nil {
				r.note([]string{fmt.Sprintf("QueryEnd panicked: %v", p)})
			}
		}()
		out, err = r.endHooks(ctx, out, err)
	}()
	out.HookErrors = slices.Clone(r.errors)
	return out, err
}

// endHooks runs the hooks of QueryEnd and shows the end. err is why the query has no
// answer; a hook that fails the query here adds its reason.
func (r *run) endHooks(ctx context.Context, out Response, err error) (Response, error) {
	m := r.at(schema.QueryEnd, out, nil)
	m.event.Mute = true // no model reads messages any more
	e := r.judge(ctx, m)
	if next, ok := m.currentValue().(Response); ok {
		out = next
	}
	failed := e != nil && e.how == Failed
	switch {
	case failed && err != nil: // the first reason stays the ending
		err = fmt.Errorf("%w; %w", err, e.err)
		out.Error = err.Error()
	case failed:
		err, out.Status, out.Error, out.Reason = e.err, Failed, e.err.Error(), e.reason
	case e != nil:
		r.note([]string{fmt.Sprintf("at the query's end, where that is only recorded: %v", e.err)})
	}
	if m.verdict.Restart == nil { // a restart has no effect here
		r.inject(nil, &m.verdict)
	}
	if out.Content != "" && !failed {
		r.say(Chunk{Kind: TextChunk, Text: out.Content})
	}
	r.say(Chunk{Kind: EndChunk, Text: out.Error})
	return out, err
}

// outlive returns a context that continues for a grace period after ctx has ended, for
// hooks that must still run.
func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-t.C:
			cancel(fmt.Errorf("the query was cancelled %v ago: %w", grace, context.Cause(ctx)))
		case <-out.Done():
		}
	})
	return out, func() { stop(); cancel(nil) }
}
