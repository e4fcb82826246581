package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// maxReply is the limit of all answers of one batch, so that the reply fits into a
// message.
const maxReply = schema.MaxPayload - 1<<20

// job is one batch in progress. Its slot is freed when every handler has returned,
// including those that were not waited for, so that a worker full of hanging handlers is
// busy.
type job struct {
	w        *Worker
	v        *version
	batch    *schema.Batch
	event    *schema.Event
	until    time.Time // when the worker answers with the outcomes so far
	progress *progress // nil: heartbeats do not report it
	outcomes []schema.Outcome
	size     int
	ended    bool
	handlers sync.WaitGroup
	left     atomic.Bool // some handler was not waited for
	history  history
	span     *trace.Span // nil: not traced
}

// run runs a batch in a taken slot, and frees the slot.
func (w *Worker) run(ctx context.Context, b *schema.Batch, p *progress) schema.BatchReply {
	j := &job{w: w, batch: b, progress: p, until: time.Now().Add(b.Left - schema.Margin(b.Left))}
	j.startTrace()
	reply := schema.BatchReply{Worker: w.opt.Name}
	if reply.Status, reply.Error = j.prepare(); reply.Status == schema.StatusOK {
		j.outcomes = slices.Grow(b.Room[:0], len(b.Hooks))
		j.hooks(ctx)
		reply.Outcomes = j.outcomes
	}
	j.span.Text(trace.Outcome, string(reply.Status))
	j.span.Done()
	j.release()
	return reply
}

// release frees the slot, now or when the last handler returns.
func (j *job) release() {
	if !j.left.Load() {
		j.end()
		return
	}
	go func() {
		j.handlers.Wait()
		j.end()
	}()
}

func (j *job) end() {
	if j.history.room > 0 {
		j.w.histories.Release(j.history.room)
	}
	if j.v != nil {
		j.w.leave(j.v)
	}
	j.w.release()
}

// prepare finds the batch's config version and decodes its event.
func (j *job) prepare() (schema.Status, string) {
	if j.v = j.w.use(j.batch); j.v == nil {
		return schema.StatusStale, fmt.Sprintf("config version %d is not known here", j.batch.Version)
	}
	for _, i := range j.batch.Hooks {
		if i < 0 || i >= len(j.v.hooks) || j.v.hooks[i].hook == nil {
			return schema.StatusStale, fmt.Sprintf("config version %d has no hook %d for a pool of this worker", j.batch.Version, i)
		}
	}
	var err error
	j.event, err = schema.DecodeEvent(j.batch.Body, j.batch.Routing)
	if _, forged := errors.AsType[*schema.Mismatch](err); forged {
		return schema.StatusMismatch, err.Error()
	}
	if err != nil {
		return schema.StatusMalformed, err.Error()
	}
	return schema.StatusOK, ""
}

// hooks runs the batch until a hook ends the chain. Hooks that may rewrite run one after
// the other, and neighbouring readonly hooks side by side.
func (j *job) hooks(ctx context.Context) {
	rest := j.batch.Hooks
	for len(rest) > 0 && !j.ended {
		n := j.countBeside(rest)
		if n == 1 {
			j.take(j.runHook(ctx, rest[0], j.event))
		} else {
			j.runBeside(ctx, rest[:n])
		}
		rest = rest[n:]
	}
}

// countBeside returns how many of the next hooks run side by side. Inline handlers are
// too cheap for that.
func (j *job) countBeside(hooks []int) int {
	n := 0
	for n < len(hooks) {
		l := &j.v.hooks[hooks[n]]
		if !l.hook.Readonly || l.inline {
			break
		}
		n++
	}
	return max(n, 1)
}

// runBeside runs hooks side by side and adds their outcomes in registration order as they
// become available, so that heartbeats report them. It waits for all, even after one that
// ends the chain, so that every outcome is reported.
func (j *job) runBeside(ctx context.Context, hooks []int) {
	outcomes, event := make([]chan schema.Outcome, len(hooks)), j.event
	for i, h := range hooks {
		outcomes[i] = make(chan schema.Outcome, 1)
		j.handlers.Go(func() { outcomes[i] <- j.runHook(ctx, h, event) })
	}
	for i := range hooks {
		j.take(<-outcomes[i])
	}
}

// take adds an outcome, and applies its rewrite for the next hook.
func (j *job) take(o schema.Outcome) {
	if j.size += o.Result.Size(); j.size > maxReply {
		o.Kind, o.Result = schema.Errored, *o.Result.Trimmed()
		o.Error = fmt.Sprintf("the answers of its batch are together larger than %d bytes; answer less, or put the hooks into separate pools", maxReply)
	}
	h := j.v.hooks[o.Hook].hook
	j.outcomes = append(j.outcomes, o)
	if j.progress != nil {
		j.w.mu.Lock()
		j.progress.outcomes = j.outcomes
		j.w.mu.Unlock()
	}
	if dispatch.Goes(&o) {
		return
	}
	part := dispatch.Settle(h, &o)
	j.ended = j.ended || o.Kind == schema.LoadError || h.Event.Terminal(part.Decision)
	if rw := part.Rewritten(h.Event); rw != nil && !j.ended {
		e := *j.event
		e.Apply(rw)
		j.event = &e
	}
}

// runHook runs one hook, within its own deadline and the batch's.
func (j *job) runHook(ctx context.Context, i int, e *schema.Event) (o schema.Outcome) {
	l := &j.v.hooks[i]
	start := time.Now()
	o.Hook = i
	span := j.hookSpan(l.hook)
	ctx = trace.With(ctx, span.Or(j.batch.Trace))
	defer func() {
		o.Took = schema.Duration(time.Since(start))
		endHookSpan(span, &o)
	}()
	if l.err != nil {
		o.Kind, o.Error = schema.LoadError, "its handler cannot be loaded: "+l.err.Error()
		return o
	}
	left := j.until.Sub(start)
	if left <= 0 {
		o.Kind, o.Error = schema.Deadline, "the call's time was over before it could start"
		return o
	}
	if l.inline && l.slots == nil {
		return j.finish(o, l, j.call(ctx, l, e))
	}
	limit, why := left, "the call's time was over before it answered"
	if t := l.hook.Timeout.Std(); t < left {
		limit, why = t, fmt.Sprintf("did not answer within its timeout of %s", t)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if l.slots != nil {
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			o.Kind, o.Error = schema.Busy, fmt.Sprintf("%d calls of this hook were already under way until its deadline", cap(l.slots))
			return o
		}
	}
	answer := make(chan handlerReturn, 1)
	j.handlers.Go(func() {
		if l.slots != nil {
			defer func() { <-l.slots }()
		}
		defer reportExit(answer)
		answer <- j.call(ctx, l, e)
	})
	select {
	case a := <-answer:
		if a.err == nil || ctx.Err() == nil {
			return j.finish(o, l, a)
		}
	case <-ctx.Done():
	}
	j.left.Store(true)
	o.Kind, o.Error = schema.Deadline, why
	return o
}

// finish turns a handler's return into its outcome.
func (j *job) finish(o schema.Outcome, l *loaded, a handlerReturn) schema.Outcome {
	switch n := a.result.Size(); {
	case a.err != nil:
		o.Kind, o.Error = schema.Errored, a.err.Error()
		if _, gone := errors.AsType[*UnloadedError](a.err); gone {
			o.Kind = schema.LoadError
		}
		log := bus.InTrace(j.w.opt.Logger, j.span.Or(j.batch.Trace)).With("hook", l.hook.Name, "event_id", j.batch.ID, "error", a.err)
		if a.stack != "" {
			log = log.With("stack", a.stack)
		}
		log.Warn("hook failed")
	case !a.result.Encodable():
		o.Kind, o.Error = schema.Errored, fmt.Sprintf("answered with a value that is not JSON, or nests deeper than %d levels", schema.MaxDepth)
		o.Result = *a.result.Trimmed()
	case n > schema.MaxResult:
		o.Kind, o.Error = schema.Errored, fmt.Sprintf("answered with %d bytes; an answer has at most %d", n, schema.MaxResult)
		o.Result = *a.result.Trimmed()
	default:
		o.Result = a.result
	}
	return o
}

// handlerReturn is what a handler returned.
type handlerReturn struct {
	result schema.Result
	err    error
	stack  string // of a panic, for the log only
}

// reportExit answers for a handler that ended its goroutine instead of returning.
func reportExit(answer chan<- handlerReturn) {
	select {
	case answer <- handlerReturn{err: errors.New("ended its goroutine instead of returning")}:
	default: // it has returned
	}
}

// call runs a handler and turns a panic into an error.
func (j *job) call(ctx context.Context, l *loaded, e *schema.Event) (a handlerReturn) {
	defer func() {
		if p := recover(); p != nil {
			a = handlerReturn{err: fmt.Errorf("panicked: %v", p), stack: string(debug.Stack())}
		}
	}()
	if e, a.err = j.eventFor(ctx, l, e); a.err == nil {
		a.result, a.err = l.handler.Handle(ctx, e)
	}
	return a
}

// startTrace begins the span of a batch.
func (j *job) startTrace() {
	b := j.batch
	j.span = j.w.opt.Tracer.Start(b.Trace, trace.Server, "run", string(b.Event))
	j.span.Text(trace.Worker, j.w.opt.Name)
	j.span.Text(trace.Batch, b.Batch)
	j.span.Text(trace.Agent, b.Agent)
	j.span.Text(trace.Event, string(b.Event))
	j.span.Text(trace.EventID, b.ID)
	j.span.Text(trace.Tool, b.Tool)
	j.span.Number(trace.Version, int64(b.Version))
	j.span.Number(trace.Hooks, int64(len(b.Hooks)))
}

// hookSpan begins the span of one hook, the parent of its handler's spans.
func (j *job) hookSpan(h *schema.Hook) *trace.Span {
	s := j.span.Child(trace.Internal, "hook", h.Name)
	s.Text(trace.Hook, h.Name)
	s.Text(trace.Handler, string(h.Type))
	s.Text(trace.Pool, h.Pool)
	return s
}

// endHookSpan ends the span with the hook's outcome. The hook's reason is not part of it.
func endHookSpan(s *trace.Span, o *schema.Outcome) {
	if !s.Kept() {
		return
	}
	kind := cmp.Or(o.Kind, schema.OK)
	s.Text(trace.Outcome, string(kind))
	s.Text(trace.Decision, string(o.Result.Decision))
	if kind != schema.OK {
		s.Fail(string(kind))
	}
	s.Done()
}
