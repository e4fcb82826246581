package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/semaphore"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// A Caller asks a worker to run a batch and waits for its reply, until ctx ends. If
// worker is empty, any worker of the pool may answer. It returns [ErrNoWorker] if no
// worker listens.
type Caller interface {
	Call(ctx context.Context, pool, worker string, b *schema.Batch) (schema.BatchReply, error)
}

// Local is a worker in this process. Try runs a batch as a function call if a
// slot is free, and reports whether it did.
type Local interface {
	Try(ctx context.Context, b *schema.Batch) (schema.BatchReply, bool)
}

// Options are what a Dispatcher needs.
type Options struct {
	// Caller reaches the workers.
	Caller Caller
	// Local serves the pool "default" in this process; nil: there is no such worker.
	Local Local
	// Members knows the workers.
	Members *Members
	// NewID makes batch ids.
	NewID func() string
	// Decode reads events for conditions and rewrites; nil: schema.DecodeEvent.
	Decode Decoder
	// Shadows limits the shadow batches in progress; 0: 64. An event counts once more for
	// each full mebibyte of its body.
	Shadows int
	// Watch observes what is not in a verdict; nil fields are skipped.
	Watch Watch
	// Logger is the log; nil: slog's default.
	Logger *slog.Logger
}

// Watch has callbacks for metrics and records. They must not block.
type Watch struct {
	// Batch is called when a batch of that many hooks is sent.
	Batch func(pool string, hooks int)
	// Queued is called with the time that a batch waited for a free worker.
	Queued func(pool string, waited time.Duration)
	// Rerun is called when hooks run again because their worker was lost.
	Rerun func(pool string, hooks int)
	// Aside is called for outcomes that are not in the verdict, of hooks that ran side by
	// side with one that ended the chain.
	Aside func(r *Request, h *schema.Hook, part schema.Verdict)
	// Shadow is called with the result of a shadow hook.
	Shadow func(r *Request, s *Shadowed)
	// ShadowDropped is called with the number of shadow hooks that did not run, because
	// of the limit or because their pool was busy.
	ShadowDropped func(hooks int)
	// ConditionFailed is called when a condition could not be evaluated and counted as
	// true.
	ConditionFailed func(h *schema.Hook, err error)
}

// A Request is one event that needs a verdict.
type Request struct {
	schema.Routing
	// Attempt counts from 1. From the second attempt on, hooks that are not idempotent do
	// not run, because they may have run before.
	Attempt int
	// Deadline is when the verdict is due.
	Deadline time.Time
	// Body is the event's JSON.
	Body []byte
	// Shed is the reason why no hook is asked, and the failure policies decide as if all
	// workers were busy; empty: hooks are asked.
	Shed string
	// Span is the trace span of the call; nil: the call is not traced.
	Span *trace.Span
	// Waiting is called with 1 when the call starts to wait for workers, and with -1 when
	// it stops. While it waits it needs no processor. Nil: it is not called.
	Waiting func(int)
}

// waiting calls Waiting, if it is set.
func (r *Request) waiting(n int) {
	if r.Waiting != nil {
		r.Waiting(n)
	}
}

// A Dispatcher runs plans.
type Dispatcher struct {
	opt     Options
	shadows *semaphore.Weighted
	buffers buffers
}

// New makes a Dispatcher.
func New(opt Options) *Dispatcher {
	if opt.Shadows == 0 {
		opt.Shadows = 64
	}
	if opt.Decode == nil {
		opt.Decode = schema.DecodeEvent
	}
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	return &Dispatcher{opt: opt, shadows: semaphore.NewWeighted(int64(opt.Shadows))}
}

// Dispatch runs the plan for r and always returns a verdict. ctx ends with the process;
// the deadline of the call is in r.
func (d *Dispatcher) Dispatch(ctx context.Context, s *Snapshot, p *Plan, r *Request) (v schema.Verdict) {
	c := &call{d: d, snap: s, plan: p, req: r, view: View{Routing: r.Routing, body: r.Body, decode: d.opt.Decode}}
	c.until = r.Deadline.Add(-schema.Margin(time.Until(r.Deadline)))
	for i, w := range p.Waves {
		if i > 0 && !c.rewrite() || !c.wave(ctx, w) {
			break
		}
	}
	c.rejectUnread()
	KeepFeedback(r.Event, &c.verdict)
	if len(p.Shadow) > 0 && r.Shed == "" {
		c.startShadows(ctx)
	}
	return c.verdict
}

// rejectUnread refuses a guarded call whose body is not an event, if conditions excluded
// all hooks without reading the body.
func (c *call) rejectUnread() {
	if !c.plan.Guarded || len(c.verdict.ExecutedHooks) > 0 || c.view.isDecoded() || c.req.Body != nil && jsontext.Value(c.req.Body).IsValid() {
		return
	}
	if _, err := c.view.Event(); err != nil {
		c.verdict = Fold(c.req.Event, c.verdict, Malformed(c.req.Event, true, err))
	}
}

// call is one event while its waves run. Only its own goroutine accesses it; batches that
// run side by side get what they need as arguments.
type call struct {
	d       *Dispatcher
	snap    *Snapshot
	plan    *Plan
	req     *Request
	verdict schema.Verdict
	// until is when the verdict must be complete. The margin before the deadline is for
	// delivering and sending it.
	until time.Time
	// view is the event after the waves so far. handed is the rewrite that it contains.
	view   View
	handed jsontext.Value
	// origin is the view of the event before the first rewrite; parts make up the
	// verdict. Both are set only if there are shadow hooks, which are compared with them.
	origin *View
	parts  []part
}

// wave runs batches side by side and folds their parts in registration order. It reports
// whether the chain goes on.
func (c *call) wave(ctx context.Context, w Wave) bool {
	runs := make([]run, 0, len(w)) // never grown: goroutines hold pointers into it
	for i := range w {
		b := &w[i]
		hooks := b.Hooks
		if b.Conditional {
			span := c.req.Span.Child(trace.Internal, "when", "")
			hooks = c.holding(b.Hooks, c.until)
			span.Number(trace.Hooks, int64(len(hooks)))
			span.Done()
		}
		if len(hooks) > 0 {
			runs = append(runs, run{call: c, batch: b, hooks: hooks, body: c.view.body})
		}
	}
	if len(runs) == 0 {
		return true
	}
	for i := range runs[1:] {
		r := &runs[1+i]
		r.done = make(chan struct{})
		go func() {
			defer close(r.done)
			r.do(ctx)
		}()
	}
	runs[0].do(ctx)
	for i := range runs {
		if i > 0 {
			<-runs[i].done
		}
		if !c.fold(&runs[i]) {
			c.abandon(runs[i+1:])
			return false
		}
	}
	return true
}

// fold adds a batch's parts to the verdict and reports whether the chain goes on.
func (c *call) fold(r *run) bool {
	defer c.req.Span.Child(trace.Internal, "fold", "").Done()
	c.verdict.ExecutedHooks = slices.Grow(c.verdict.ExecutedHooks, len(r.parts))
	kept := c.keepParts(r.parts...)
	for i := range r.parts {
		if c.verdict.Ended(c.req.Event) {
			c.aside(r.parts[i:])
			kept = true
			break
		}
		fold(c.req.Event, &c.verdict, &r.parts[i].verdict)
	}
	if !kept {
		r.releaseBuffer()
	}
	if r.refusal != nil {
		c.end(*r.refusal)
		return false
	}
	return !c.verdict.Ended(c.req.Event)
}

// end folds a verdict that is about the whole event, not about one hook.
func (c *call) end(v schema.Verdict) {
	c.verdict = Fold(c.req.Event, c.verdict, v)
	c.keepParts(part{hook: last, verdict: v})
}

// abandon reports the parts of batches that ran beside the one that ended the chain, when
// they finish. The verdict does not wait for them.
func (c *call) abandon(runs []run) {
	for i := range runs {
		r := &runs[i]
		go c.d.guarded(func() {
			<-r.done
			c.aside(r.parts)
		})
	}
}

func (c *call) aside(parts []part) {
	if c.d.opt.Watch.Aside == nil {
		return
	}
	for i := range parts {
		c.d.opt.Watch.Aside(c.req, &c.snap.Config.Hooks[parts[i].hook], parts[i].verdict)
	}
}

// rewrite applies the hooks' rewrites to the event before the next wave. It reports
// whether the chain goes on.
func (c *call) rewrite() bool {
	rw := c.verdict.Rewritten(c.req.Event)
	if rw == nil || bytes.Equal(rw, c.handed) {
		return true
	}
	next, err := c.view.rewritten(rw)
	if err != nil {
		c.end(Malformed(c.req.Event, c.plan.Guarded, err))
		return false
	}
	if len(c.plan.Shadow) > 0 && c.origin == nil {
		origin := c.view
		c.origin = &origin
	}
	c.view, c.handed = next, rw
	return true
}

// Malformed returns the verdict about an event that cannot be decoded. An event that
// contradicts its headers is forged and denied. An unreadable event is denied if the call
// is guarded.
func Malformed(t schema.EventType, guarded bool, err error) schema.Verdict {
	v := schema.Verdict{HookErrors: []string{fmt.Sprintf("malformed event: %v", err)}}
	blocking := t.Blocking()
	mismatch, forged := errors.AsType[*schema.Mismatch](err)
	switch {
	case forged && blocking == schema.Deny:
		v.Decision, v.Reason = schema.Deny, "malformed event: "+mismatch.Error()
	case guarded && blocking != schema.None:
		v.Decision, v.Reason = blocking, fmt.Sprintf("malformed event, and a fail-closed hook guards this call: %v", err)
	}
	return v
}

// guarded runs background work and logs a panic instead of ending the process.
func (d *Dispatcher) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			d.opt.Logger.Error("background work panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	f()
}
