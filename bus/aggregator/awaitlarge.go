package aggregator

import (
	"context"
	"time"
)

// awaitLarge makes a large event wait until it may be under way. If it may not in time, its charge
// records that, and [shed] answers it.
type awaitLarge struct{ a *Aggregator }

func (s awaitLarge) pass(e *arrival) bool {
	if e.charge.over == "" && e.err == nil && len(e.msg.Data) >= minLarge && !e.overdue() {
		if !s.a.waitForLarge(e) {
			e.charge.over = limitBytes
		}
		e.waited = time.Since(e.at)
	}
	return true
}

// waitForLarge waits until a large event may be under way, and reports false if it may not be in
// time. While it waits, it does not count as one of the receiver's calls.
func (a *Aggregator) waitForLarge(e *arrival) bool {
	large, size := &e.charge.large, len(e.msg.Data)
	if a.intake.limits.large.begin(large, e.req.Agent, size) {
		return true
	}
	if !a.intake.limits.large.queue(large, e.req.Agent, size) {
		return false
	}
	if e.beat == nil {
		e.beat = a.intake.beats.begin(e.msg.Reply, e.at)
	}
	ctx, cancel := context.WithDeadline(a.life.ctx, e.at.Add(e.req.Left/2))
	defer cancel()
	return e.from.park(size, func() bool { return a.intake.limits.large.wait(ctx, large) })
}
