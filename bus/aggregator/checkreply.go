package aggregator

import "github.com/hookfabric/hookfabric/bus"

// checkReply ends events without an inbox for the answer: they were only published, or sent to
// have this broker write to another subject.
type checkReply struct{ report *report }

func (s checkReply) pass(e *arrival) bool {
	if bus.IsInbox(e.msg.Reply) {
		return true
	}
	s.report.metrics.malformed.Inc()
	s.report.log.unanswerable(e.msg.Subject, e.msg.Reply)
	return false
}
