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

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// A Caller asks a worker to run a batch and waits for its reply, until ctx
// ends. An empty worker means whoever serves the pool answers first. It
// returns [ErrNoWorker] when nobody listens there.
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
	// Local serves the pool "default" in this process; nil: nobody does.
	Local Local
	// Members knows the workers.
	Members *Members
	// NewID makes batch ids.
	NewID func() string
	// Decode reads events for conditions and rewrites; nil: schema.DecodeEvent.
	Decode Decoder
	// Shadows bounds the shadow batches under way; 0: 64. Those of an event of
	// several megabytes count as so many more.
	Shadows int
	// Watch hears of what is not in a verdict; nil fields are skipped.
	Watch Watch
	// Logger; nil: slog's default.
	Logger *slog.Logger
}

// Watch is told what happens besides verdicts. Its functions must not block.
type Watch struct {
	// Batch: a batch of so many hooks is sent.
	Batch func(pool string, hooks int)
	// Queued: a batch waited so long for a free worker.
	Queued func(pool string, waited time.Duration)
	// Rerun: hooks run again because their worker was lost.
	Rerun func(pool string, hooks int)
	// Aside: outcomes that are not in the verdict, of hooks that ran side by side
	// with one that ended the chain.
	Aside func(r *Request, h *schema.Hook, part schema.Verdict)
	// Shadow: what came of a shadow hook.
	Shadow func(r *Request, s *Shadowed)
	// ShadowDropped: so many shadow hooks did not run, because too many were, or
	// because their pool was too busy.
	ShadowDropped func(hooks int)
	// ConditionFailed: a condition could not be evaluated and counted as true.
	ConditionFailed func(h *schema.Hook, err error)
}

// A Request is one event to judge.
type Request struct {
	schema.Routing
	// Attempt counts from 1. On a second attempt hooks that are not idempotent
	// do not run: nobody knows whether they did.
	Attempt int
	// Deadline is when the verdict is due.
	Deadline time.Time
	// Body is the event's JSON.
	Body []byte
	// Shed is why no hook is asked, so that the failure policies decide as if all
	// workers were busy; empty: they are asked.
	Shed string
	// Span is what is told of the call to those who follow traces; nil: nobody does.
	Span *trace.Span
	// Waiting hears when the call begins to wait for workers, with 1, and when it goes
	// on, with -1: meanwhile it needs no processor. Nil: nobody does.
	Waiting func(int)
}

// waiting tells that.
func (r *Request) waiting(n int) {
	if r.Waiting != nil {
		r.Waiting(n)
	}
}

// A Dispatcher has plans run.
type Dispatcher struct {
	opt     Options
	shadows chan struct{}
	rooms   rooms
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
	return &Dispatcher{opt: opt, shadows: make(chan struct{}, opt.Shadows)}
}

// Dispatch runs the plan for r and returns the verdict, always. The context
// carries the process's life, not the call's deadline: that is in r.
func (d *Dispatcher) Dispatch(ctx context.Context, s *Snapshot, p *Plan, r *Request) (v schema.Verdict) {
	c := &call{d: d, snap: s, plan: p, req: r, view: View{Routing: r.Routing, body: r.Body, decode: d.opt.Decode}}
	c.until = r.Deadline.Add(-schema.Margin(time.Until(r.Deadline)))
	for i, w := range p.Waves {
		if i > 0 && !c.rewrite() || !c.wave(ctx, w) {
			break
		}
	}
	c.unread()
	KeepFeedback(r.Event, &c.verdict)
	if len(p.Shadow) > 0 && r.Shed == "" {
		c.startShadows(ctx)
	}
	return c.verdict
}

// unread refuses a guarded call whose conditions kept all hooks from being asked
// without anybody looking at its body, if that is no event at all.
func (c *call) unread() {
	if !c.plan.Guarded || len(c.verdict.ExecutedHooks) > 0 || c.view.read() || c.req.Body != nil && jsontext.Value(c.req.Body).IsValid() {
		return
	}
	if _, err := c.view.Event(); err != nil {
		c.verdict = Fold(c.req.Event, c.verdict, Malformed(c.req.Event, true, err))
	}
}

// call is one event on its way through its waves. Only its own goroutine
// touches it; batches that run side by side get what they need as arguments.
type call struct {
	d       *Dispatcher
	snap    *Snapshot
	plan    *Plan
	req     *Request
	verdict schema.Verdict
	// until is when the verdict has to be complete, so that the margin is left
	// to deliver and to send it, however many waves there are.
	until time.Time
	// view is the event as the waves so far left it, handed the rewrite that is
	// in it.
	view   View
	handed jsontext.Value
	// origin is the view of the event as it came, once it was rewritten, and
	// parts what the verdict is made of. Only shadow hooks are held against them.
	origin *View
	parts  []part
}

// wave runs batches side by side and folds what they came to, in registration
// order. It reports whether the chain goes on.
func (c *call) wave(ctx context.Context, w Wave) bool {
	runs := make([]run, 0, len(w)) // all in one place, which they keep
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

// fold adds a batch's outcomes to the verdict and reports whether the chain
// goes on.
func (c *call) fold(r *run) bool {
	defer c.req.Span.Child(trace.Internal, "fold", "").Done()
	c.verdict.ExecutedHooks = slices.Grow(c.verdict.ExecutedHooks, len(r.parts))
	kept := c.keep(r.parts...)
	for i := range r.parts {
		if c.verdict.Ended(c.req.Event) {
			c.aside(r.parts[i:])
			kept = true
			break
		}
		fold(c.req.Event, &c.verdict, &r.parts[i].verdict)
	}
	if !kept {
		r.leave()
	}
	if r.refusal != nil {
		c.end(*r.refusal)
		return false
	}
	return !c.verdict.Ended(c.req.Event)
}

// end folds what is said of the whole event.
func (c *call) end(v schema.Verdict) {
	c.verdict = Fold(c.req.Event, c.verdict, v)
	c.keep(part{hook: last, verdict: v})
}

// abandon lets batches that ran beside the one that ended the chain finish, and
// reports what they came to. Nobody waits for them.
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

// rewrite hands what the hooks rewrote on to the next wave.
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

// Malformed is the verdict about an event that cannot be judged as it is. One
// that contradicts itself is forged, and denied; one that cannot be read is
// denied if it is guarded.
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

// guarded runs what no verdict waits for; if it breaks, nobody else does.
func (d *Dispatcher) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			d.opt.Logger.Error("background work panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	f()
}
