package dispatch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// run is one batch until each hook that the chain reached has an outcome. It may need
// several workers: busy and stale workers refuse it, and lost workers leave hooks without
// an outcome.
type run struct {
	call  *call
	batch *Batch
	hooks []int // the hooks without an outcome, in order
	body  []byte
	done  chan struct{}

	// buffer holds the memory for outcomes, parts and trail.
	buffer *outcomeBuffer
	// parts are the processed outcomes, in registration order.
	parts []part
	// trail is the unused memory for executed hooks of the next parts.
	trail []schema.ExecutedHook
	// refusal is the verdict about a malformed event; nil: the event is valid.
	refusal *schema.Verdict

	excluded  []string   // workers that must not be asked again
	noLocal   bool       // the local worker must not be asked again
	entry     queueEntry // its place in the pool's queue
	lost      bool       // its worker was lost once
	stale     bool       // a worker did not have the config version
	second    bool       // it asks a second worker about a load error
	confirmed int        // number of leading parts that need no second opinion
	applied   int        // number of leading parts whose rewrites are in body
	until     time.Time
}

// part is the outcome of one hook after its failure policy was applied.
type part struct {
	hook    int
	kind    schema.OutcomeKind
	verdict schema.Verdict
}

// do runs the batch. It never panics and never leaves a hook without an outcome.
func (r *run) do(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			r.call.d.opt.Logger.Error("dispatch panicked", "panic", p, "stack", string(debug.Stack()))
			r.failRemaining(schema.Errored, fmt.Sprintf("the dispatcher failed: %v", p))
		}
	}()
	r.acquireBuffer()
	if why := r.call.req.Shed; why != "" {
		r.failRemaining(schema.Busy, why)
		return
	}
	if r.call.req.Attempt > 1 && !r.batch.Idempotent {
		r.failRemaining(schema.Lost, "may have run at the first attempt of this call; it is not idempotent, so it does not run again")
		return
	}
	now := time.Now()
	left := r.call.until.Sub(now)
	if left <= 0 {
		r.failRemaining(schema.Deadline, "the call's deadline passed before the hook could run")
		return
	}
	if w := r.call.d.opt.Watch.Batch; w != nil {
		w(r.batch.Pool, len(r.hooks))
	}
	r.until = now.Add(r.budget(left))
	r.entry.until = r.until
	for len(r.hooks) > 0 && r.step(ctx) {
	}
}

// acquireBuffer gets memory for the batch's outcomes.
func (r *run) acquireBuffer() {
	r.buffer = r.call.d.buffers.get(len(r.hooks))
	r.parts, r.trail = r.buffer.parts[:0], r.buffer.trail
}

// releaseBuffer returns the memory. The caller must not use the run's parts after it.
func (r *run) releaseBuffer() {
	r.call.d.buffers.put(r.buffer)
	r.buffer, r.parts, r.trail = nil, nil, nil
}

// budget returns the time that the batch may take: the sum of its hooks' timeouts plus a
// margin for workers, limited by what the call has left.
func (r *run) budget(left time.Duration) time.Duration {
	var sum time.Duration
	for _, i := range r.hooks {
		sum += r.hook(i).Timeout.Std()
	}
	return min(left, sum+3*schema.Margin(sum)+20*time.Millisecond)
}

func (r *run) hook(i int) *schema.Hook { return &r.call.snap.Config.Hooks[i] }

// step sends the remaining hooks to one worker. It reports whether hooks still have to
// run.
func (r *run) step(ctx context.Context) bool {
	if err := r.applyRewrites(len(r.parts)); err != nil {
		r.failRemaining(schema.Errored, "the batch cannot be prepared for its worker: "+err.Error())
		return false
	}
	if again, ok := r.tryLocal(ctx); ok {
		return again
	}
	r.entry.version, r.entry.excluded = r.call.snap.Config.Version, r.excluded
	to, wait, err := r.members().take(r.batch.Pool, &r.entry)
	return r.proceed(ctx, to, wait, err)
}

// tryLocal runs the batch in this process if that is allowed and a slot is free. ok
// reports whether it ran, again whether hooks still have to run.
func (r *run) tryLocal(ctx context.Context) (again, ok bool) {
	if r.entry.local = r.mayRunLocally(); !r.entry.local {
		return false, false
	}
	r.entry.freed = r.members().freed.Load()
	b := r.wire()
	span := r.span(&b)
	reply, ok := r.call.d.opt.Local.Try(ctx, &b)
	if !ok {
		return false, false // no slot was free, so the span is dropped
	}
	endSpan(span, &reply, nil)
	r.noLocal = reply.Status != schema.StatusOK
	return r.useReply(ctx, choice{local: true}, reply), true
}

// mayRunLocally reports whether the worker in this process may run the batch.
func (r *run) mayRunLocally() bool {
	return r.call.d.opt.Local != nil && r.batch.Pool == schema.DefaultPool && !r.noLocal
}

func (r *run) members() *Members { return r.call.d.opt.Members }

// proceed follows the answer of Members: wait, give up, or send.
func (r *run) proceed(ctx context.Context, to choice, wait bool, err error) bool {
	switch {
	case errors.Is(err, ErrNoWorker):
		return r.noWorker()
	case err != nil:
		r.failRemaining(schema.Busy, "every worker of its pool is busy and "+err.Error())
		return false
	case to.local:
		return true
	case wait:
		return r.wait(ctx)
	}
	return r.send(ctx, to)
}

// wait queues for a worker until the batch's time ends.
func (r *run) wait(ctx context.Context) bool {
	to, ok := r.waitForSlot(ctx)
	switch {
	case ok && to.member != nil:
		return r.send(ctx, to)
	case ok:
		return true
	case ctx.Err() != nil:
		r.failRemaining(schema.Lost, "the aggregator stopped")
	case r.stale:
		r.failRemaining(schema.NoWorker, "no worker of its pool loaded the configuration before the hook's deadline")
	default:
		r.failRemaining(schema.Busy, "")
	}
	return false
}

// waitForSlot blocks until the queue has a slot or news for the batch. ok is false if its
// time ended first.
func (r *run) waitForSlot(ctx context.Context) (to choice, ok bool) {
	start := time.Now()
	timer := time.NewTimer(r.until.Sub(start))
	defer timer.Stop()
	defer func() {
		if w := r.call.d.opt.Watch.Queued; w != nil {
			w(r.batch.Pool, time.Since(start))
		}
	}()
	r.call.req.waiting(1)
	defer r.call.req.waiting(-1)
	select {
	case to = <-r.entry.got:
		return to, true
	case <-timer.C:
	case <-ctx.Done():
	}
	r.members().leave(r.batch.Pool, &r.entry)
	return choice{}, false
}

// send asks one worker and waits for its reply, for news that the worker is lost, or for
// the end of the batch's time.
func (r *run) send(ctx context.Context, to choice) bool {
	asking, stop := context.WithDeadline(ctx, r.until)
	defer stop()
	f := &sentBatch{
		wire: r.wire(), pool: r.batch.Pool, worker: to.worker,
		idempotent: r.batch.Idempotent, spare: r.mayRunLocally(), stop: stop,
	}
	span := r.span(&f.wire)
	a := r.ask(asking, to, f)
	endSpan(span, &a.reply, a.err)
	if a.err == nil {
		return r.useReply(ctx, to, a.reply)
	}
	if cause := context.Cause(asking); cause != nil {
		a.err = cause
		if f.lost != nil && errors.Is(cause, context.Canceled) {
			a.err = f.lost
		}
	}
	return r.handleNoReply(ctx, to, a)
}

// askResult is the result of asking one worker.
type askResult struct {
	reply schema.BatchReply
	err   error
	// worker is the worker that had the batch, if known. finished are the outcomes from
	// its heartbeats.
	worker   string
	finished []schema.Outcome
}

// ask calls one worker, and always returns the worker's slot.
func (r *run) ask(ctx context.Context, to choice, f *sentBatch) (a askResult) {
	m := r.members()
	defer func() {
		a.worker, a.finished = m.untrack(f)
		if to.member != nil {
			m.returnSlot(to.member, f.wire.Version, a.reply.Status)
		}
	}()
	if !m.track(f, to.member) {
		a.err = errUnsent
		return a
	}
	r.call.req.waiting(1)
	defer r.call.req.waiting(-1)
	a.reply, a.err = r.call.d.opt.Caller.Call(ctx, f.pool, to.worker, &f.wire)
	return a
}

// wire returns the batch as workers receive it, with the time that is left now.
func (r *run) wire() schema.Batch {
	return schema.Batch{
		Routing: r.call.req.Routing,
		Batch:   r.call.d.opt.NewID(),
		Version: r.call.snap.Config.Version,
		Fabric:  r.call.snap.Config.Fabric,
		Hooks:   r.hooks,
		Left:    time.Until(r.until),
		Body:    r.body,
		Room:    r.buffer.outcomes,
	}
}

// span begins the trace span of one request to a worker. It is the parent of the worker's
// spans.
func (r *run) span(b *schema.Batch) *trace.Span {
	s := r.call.req.Span.Child(trace.Client, "batch", r.batch.Pool)
	b.Trace = s.Or(b.Trace)
	s.Text(trace.Pool, r.batch.Pool)
	s.Text(trace.Batch, b.Batch)
	s.Number(trace.Hooks, int64(len(b.Hooks)))
	return s
}

// endSpan ends the span with the reply.
func endSpan(s *trace.Span, reply *schema.BatchReply, err error) {
	s.Text(trace.Worker, reply.Worker)
	s.Text(trace.Outcome, string(reply.Status))
	if err != nil {
		s.Fail(err.Error())
	}
	s.Done()
}

// outcomeBuffer is memory for the outcomes and parts of a batch until they are folded. It
// is kilobytes needed for microseconds, so it is reused.
type outcomeBuffer struct {
	outcomes []schema.Outcome
	parts    []part
	trail    []schema.ExecutedHook
}

// maxBuffer is the largest reused buffer, in hooks.
const maxBuffer = 64

// buffers is a pool of outcomeBuffers. Its zero value is ready to use.
type buffers struct{ spare sync.Pool }

// get returns a buffer for that many hooks.
func (p *buffers) get(hooks int) *outcomeBuffer {
	r, ok := p.spare.Get().(*outcomeBuffer)
	if !ok {
		r = new(outcomeBuffer)
	}
	r.outcomes = slices.Grow(r.outcomes[:0], hooks)[:hooks]
	r.parts = slices.Grow(r.parts[:0], hooks)[:hooks]
	r.trail = slices.Grow(r.trail[:0], hooks)[:hooks]
	return r
}

// put returns a buffer. The caller must not use it after that.
func (p *buffers) put(r *outcomeBuffer) {
	if len(r.parts) > maxBuffer {
		return
	}
	clear(r.outcomes)
	clear(r.parts)
	clear(r.trail)
	p.spare.Put(r)
}
