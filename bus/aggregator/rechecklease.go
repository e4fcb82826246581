package aggregator

import (
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// recheckLease is [checkLease] for a tool call that passes: while its hooks ran, the lease may have
// lapsed, and an operator may have frozen the agent without waiting for this broker.
type recheckLease struct{ a *Aggregator }

func (s recheckLease) pass(e *arrival) bool {
	now := time.Now()
	if e.req.Event != schema.PreToolUse || e.req.Event.Terminal(e.verdict.Decision) || s.a.leased(now) {
		return true
	}
	if !s.a.sure(now, e, e.asked.Deadline.Sub(now)) {
		s.a.report.Metrics.InFlight.Dec()
		return false
	}
	s.a.overtaken(e.act, &e.req.Routing, &e.verdict)
	return true
}
