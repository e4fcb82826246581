package aggregator

import (
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/schema"
)

// silence is how long a shim waits for a heartbeat before it assumes that the aggregator is lost.
const silence = schema.Missed * schema.BeatEvery

// beforeAgain is how long an event may wait without heartbeats. After that its shim asks again, and
// another broker, which does not know of the first attempt, must be free to judge it.
const beforeAgain = (schema.Missed - 1) * schema.BeatEvery

// dropStale ends events whose shims no longer wait for the answer.
type dropStale struct {
	beats  *callBeats
	report *observe.Report
}

func (s dropStale) pass(e *arrival) bool {
	if e.err != nil || !e.stale() { // an event that cannot be read does not say how long its shim waits
		return true
	}
	s.beats.end(e.beat)
	s.report.TooLate(causeStale)
	return false
}

// stale reports whether the shim has given up. Without heartbeats, a shim assumes that the
// aggregator is lost, asks a second time, and gives up after as long again.
func (e *arrival) stale() bool {
	deadline := e.req.Left
	if e.beat == nil {
		deadline = min(deadline, silence)
		if e.req.Attempt < 2 {
			deadline = min(e.req.Left, 2*silence)
		}
	}
	return e.waited > 0 && e.waited >= deadline
}
