package aggregator

import (
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// checkFreeze denies calls of frozen agents. The acknowledgements of such an event still count.
type checkFreeze struct{ a *Aggregator }

func (s checkFreeze) pass(e *arrival) bool {
	a := s.a
	e.frozen = a.freezes.current.Load()
	z := e.frozen.by(e.act, &e.req.Routing)
	if z == nil {
		return true
	}
	a.intake.beats.end(e.beat)
	e.verdict = schema.Verdict{Decision: schema.Deny, Reason: z.Refusal(e.req.Tool, e.act.terminalTools), Frozen: true, FreezeVersion: e.frozen.version()}
	a.report.Metrics.FreezeRefused(observe.FrozenAsked)
	e.asked = &dispatch.Request{
		Routing: e.req.Routing, Attempt: e.req.Attempt, Deadline: e.at.Add(e.req.Left), Body: e.req.Body,
	}
	a.remember(e.act, e.act.Plan(e.req.Agent, e.req.Event, e.req.Tool), e.asked, e.req.Acks, &e.verdict)
	decided(e.span, e.act, e.req.Event, &e.verdict)
	a.answer(e)
	return false
}
