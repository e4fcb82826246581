package dispatch

import (
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

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
