package aggregator

import (
	"cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// startSpan pins an event to the active configuration, and begins the span of a traced event. The
// spans of everything that the event causes are its children, also of work after the answer.
func (j *judging) startSpan(e *event) bool {
	e.act = j.config.active.Load()
	req := &e.Req
	s := j.tracer.Start(req.Trace, trace.Server, "judge", string(req.Event))
	req.Trace = s.Or(req.Trace)
	s.Since(e.At)
	s.Text(trace.Agent, req.Agent)
	s.Text(trace.Event, string(req.Event))
	s.Text(trace.EventID, req.ID)
	s.Text(trace.Tool, req.Tool)
	if req.Attempt > 1 {
		s.Number(trace.Attempt, int64(req.Attempt))
	}
	e.span = s
	return true
}

// decided adds the verdict to the span.
func (e *event) decided() {
	if !e.span.Kept() {
		return
	}
	t, v := e.Req.Event, &e.verdict
	e.span.Text(trace.Decision, string(cmp.Or(v.Decision, schema.Continue)))
	e.span.Number(trace.Version, int64(e.act.Config.Version))
	e.span.Number(trace.Hooks, int64(len(v.ExecutedHooks)))
	e.span.Mark(trace.Denied, t.Blocks(v.Decision))
	e.span.Mark(trace.FailedOpen, v.Failed(t) == schema.FailedOpen)
}
