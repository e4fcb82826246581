package dispatch

import (
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// span begins what is told of one question to a worker, which is the parent of what
// the worker tells.
func (r *run) span(b *schema.Batch) *trace.Span {
	s := r.call.req.Span.Child(trace.Client, "batch", r.batch.Pool)
	b.Trace = s.Or(b.Trace)
	s.Text(trace.Pool, r.batch.Pool)
	s.Text(trace.Batch, b.Batch)
	s.Number(trace.Hooks, int64(len(b.Hooks)))
	return s
}

// replied ends it with what came of it.
func replied(s *trace.Span, reply *schema.BatchReply, err error) {
	s.Text(trace.Worker, reply.Worker)
	s.Text(trace.Outcome, string(reply.Status))
	if err != nil {
		s.Fail(err.Error())
	}
	s.Done()
}
