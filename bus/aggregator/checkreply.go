package aggregator

import (
	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
)

// checkReply ends events without an inbox for the answer: they were only published, or sent to
// have this broker write to another subject.
type checkReply struct{ report *observe.Report }

func (s checkReply) pass(e *arrival) bool {
	if bus.IsInbox(e.msg.Reply) {
		return true
	}
	s.report.Metrics.Malformed.Inc()
	s.report.Log.Unanswerable(e.msg.Subject, e.msg.Reply)
	return false
}
