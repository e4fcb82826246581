package workers

import (
	"cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

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
