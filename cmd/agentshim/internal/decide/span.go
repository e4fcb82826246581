package decide

import (
	"cmp"
	"context"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// traced starts the span of a question.
func (j *Judge) traced(ctx context.Context, e *schema.Event) *trace.Span {
	s := j.link.Tracer.Start(trace.From(ctx), trace.Client, "ask", string(e.HookType))
	s.Text(trace.Agent, e.AgentID)
	s.Text(trace.Event, string(e.HookType))
	s.Text(trace.Tool, e.ToolName)
	s.Text(trace.Runtime, e.Runtime)
	return s
}

// answered ends the span with the judgement.
func answered(s *trace.Span, t schema.EventType, j *Judgement) {
	if !s.Kept() || j.Verdict == nil {
		return
	}
	s.Text(trace.EventID, j.Verdict.EventID)
	s.Text(trace.Decision, string(cmp.Or(j.Verdict.Decision, schema.Continue)))
	s.Number(trace.Version, int64(j.Verdict.ConfigVersion))
	s.Mark(trace.Denied, t.Blocks(j.Verdict.Decision))
	s.Mark(trace.FailedOpen, j.Verdict.Failed(t) == schema.FailedOpen)
	if j.Unjudged != nil {
		s.Mark(trace.Unjudged, true)
		s.Mark(trace.FailedOpen, !t.Blocks(j.Verdict.Decision))
		s.Fail("the fabric did not judge the call")
	}
	s.Done()
}
