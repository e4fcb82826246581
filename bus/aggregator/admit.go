package aggregator

import "time"

// admitEvent reports whether an event stays in the admission queue. If not, it is answered at once: no
// hook matches it, or it is late.
func (a *Aggregator) admitEvent(e *arrival, now time.Time) (stays bool) {
	e.late = true
	decode{}.pass(e)
	q := e.from.queue
	if e.err != nil || e.msg.Reply == "" || e.stale() || e.waited > e.req.Left/2 || e.waited > beforeAgain {
		return false
	}
	act := a.config.active.Load()
	plan := act.Plan(e.req.Agent, e.req.Event, e.req.Tool)
	if plan.Empty() && !a.minds(act, plan, &e.req) || q.full(e) || !q.inTime(e.at, now, e.req.Left) {
		return false
	}
	if !a.intake.limits.enter(&e.charge, e.req.Agent, now) {
		return false // an agent over its limits takes no place from others
	}
	if size := len(e.msg.Data); size >= minLarge && !a.intake.limits.large.queue(&e.charge.large, e.req.Agent, size) {
		e.charge.over = limitBytes
		return false
	}
	e.late, e.until = false, e.at.Add(e.req.Left/2)
	e.beat = a.intake.beats.begin(e.msg.Reply, e.at)
	return true
}
