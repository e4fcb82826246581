package aggregator

import (
	"cmp"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// traced begins what is told of an event to those who follow traces. All that the
// event leads to is below it, also what runs off its path.
func (a *Aggregator) traced(req *bus.EventRequest, arrived time.Time) *trace.Span {
	s := a.opt.Tracer.Start(req.Trace, trace.Server, "judge", string(req.Event))
	req.Trace = s.Or(req.Trace)
	s.Since(arrived)
	s.Text(trace.Agent, req.Agent)
	s.Text(trace.Event, string(req.Event))
	s.Text(trace.EventID, req.ID)
	s.Text(trace.Tool, req.Tool)
	if req.Attempt > 1 {
		s.Number(trace.Attempt, int64(req.Attempt))
	}
	return s
}

// decided tells what came of it.
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
