package aggregator

import (
	"cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// startSpan begins the span of a traced event. The spans of everything that the event causes are
// its children, also of work after the answer.
type startSpan struct {
	config *configuration
	tracer *trace.Tracer
}

func (p startSpan) pass(e *arrival) bool {
	e.act = p.config.active.Load()
	req := &e.req
	s := p.tracer.Start(req.Trace, trace.Server, "judge", string(req.Event))
	req.Trace = s.Or(req.Trace)
	s.Since(e.at)
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
func decided(s *trace.Span, act *active, t schema.EventType, v *schema.Verdict) {
	if !s.Kept() {
		return
	}
	s.Text(trace.Decision, string(cmp.Or(v.Decision, schema.Continue)))
	s.Number(trace.Version, int64(act.Config.Version))
	s.Number(trace.Hooks, int64(len(v.ExecutedHooks)))
	s.Mark(trace.Denied, t.Blocks(v.Decision))
	s.Mark(trace.FailedOpen, v.Failed(t) == schema.FailedOpen)
}
