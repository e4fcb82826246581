package workers

import (
	"cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// traced begins what is told of a batch to those who follow traces.
func (j *job) traced() {
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

// asked begins what is told of one hook, which is the parent of what its handler tells.
func (j *job) asked(h *schema.Hook) *trace.Span {
	s := j.span.Child(trace.Internal, "hook", h.Name)
	s.Text(trace.Hook, h.Name)
	s.Text(trace.Handler, string(h.Type))
	s.Text(trace.Pool, h.Pool)
	return s
}

// answers ends it with the hook's outcome. What the hook said stays out of it.
func answers(s *trace.Span, o *schema.Outcome) {
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
