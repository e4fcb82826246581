package loop

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// end is QueryEnd, which comes once and after everything else.
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
		out, err = r.ended(ctx, out, err)
	}()
	out.HookErrors = slices.Clone(r.errors)
	return out, err
}

// ended asks the hooks of the query's end and shows it. err is why the query has no
// answer; a hook that fails the query here is another reason.
func (r *run) ended(ctx context.Context, out Response, err error) (Response, error) {
	m := r.at(schema.QueryEnd, out, nil)
	m.event.Mute = true // nobody reads any more
	e := r.judge(ctx, m)
	if next, ok := m.seen().(Response); ok {
		out = next
	}
	failed := e != nil && e.how == Failed
	switch {
	case failed && err != nil: // how it ended before stays
		err = fmt.Errorf("%w; %w", err, e.err)
		out.Error = err.Error()
	case failed:
		err, out.Status, out.Error, out.Reason = e.err, Failed, e.err.Error(), e.reason
	case e != nil:
		r.note([]string{fmt.Sprintf("at the query's end, where that is only recorded: %v", e.err)})
	}
	if m.verdict.Restart == nil { // there is nothing left to restart
		r.inject(nil, &m.verdict)
	}
	if out.Content != "" && !failed {
		r.say(Chunk{Kind: TextChunk, Text: out.Content})
	}
	r.say(Chunk{Kind: EndChunk, Text: out.Error})
	return out, err
}

// outlive is a context that goes on for a while when ctx has ended: what must be said
// of a query is said nevertheless.
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
