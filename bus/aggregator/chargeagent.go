package aggregator

import "time"

// chargeAgent counts an event towards the limits of its agent, also a malformed one. An event over
// a limit passes on: [verify] and [shed] answer it.
type chargeAgent struct{ limits *limits }

func (s chargeAgent) pass(e *arrival) bool {
	s.limits.enter(&e.charge, e.req.Agent, time.Now())
	return true
}
