package intake

import (
	"context"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// The causes for which events are not judged, as metrics count them.
const (
	CauseBusy  = "busy"  // the failure policies answered
	CauseStale = "stale" // the shim had given up
)

// Causes returns both.
func Causes() []string { return []string{CauseBusy, CauseStale} }

// silence is how long a shim waits for a heartbeat before it assumes that the aggregator is lost.
const silence = schema.Missed * schema.BeatEvery

// beforeAgain is how long an event may wait without heartbeats. After that its shim asks again, and
// another broker, which does not know of the first attempt, must be free to judge it.
const beforeAgain = (schema.Missed - 1) * schema.BeatEvery

// Each of these steps reports whether the event goes on to the next one.

// CheckReply ends events without an inbox for the answer: they were only published, or sent to
// have this broker write to another subject.
func (in *Intake) CheckReply(e *Arrival) bool {
	if bus.IsInbox(e.Msg.Reply) {
		return true
	}
	in.opt.Report.Metrics.Malformed.Inc()
	in.opt.Report.Log.Unanswerable(e.Msg.Subject, e.Msg.Reply)
	return false
}

// Decode reads the headers of an event. It hands on an event that is malformed too: its agent is
// charged for it, and a later step answers it.
func (in *Intake) Decode(e *Arrival) bool {
	if !e.parsed {
		e.parsed = true
		e.Msg.Subject = strings.TrimSuffix(e.Msg.Subject, bus.AgainSuffix)
		e.Req, e.Err = bus.ParseEventMsg(e.Msg)
	}
	e.waited = time.Since(e.At)
	return true
}

// DropStale ends events whose shims no longer wait for the answer. An event that cannot be read
// does not say how long its shim waits.
func (in *Intake) DropStale(e *Arrival) bool {
	if e.Err != nil || !e.stale() {
		return true
	}
	in.EndBeat(e)
	in.opt.Report.TooLate(CauseStale)
	return false
}

// stale reports whether the shim has given up. Without heartbeats, a shim assumes that the
// aggregator is lost, asks a second time, and gives up after as long again.
func (e *Arrival) stale() bool {
	deadline := e.Req.Left
	if e.beat == nil {
		patience := silence
		if e.Req.Attempt < 2 {
			patience = 2 * silence
		}
		deadline = min(deadline, patience)
	}
	return e.waited > 0 && e.waited >= deadline
}

// CheckLease ends events while the active configuration is not known to be active any more, or
// workers cannot be reached. Another broker answers them, or the policy of the shim does.
func (in *Intake) CheckLease(e *Arrival) bool { return in.AwaitReady(e, e.Req.Left) }

// AwaitReady waits until the broker may answer an event, and reports false if it may not within a
// limit. It waits without heartbeats, so that the event may go to another broker during this time.
func (in *Intake) AwaitReady(e *Arrival, limit time.Duration) bool {
	if in.opt.Readiness.Ready() {
		return true
	}
	in.EndBeat(e)
	if e.Req.Attempt < 2 {
		limit = min(limit, beforeAgain)
	}
	ctx, cancel := context.WithTimeout(in.ctx, limit)
	defer cancel()
	return in.opt.Readiness.Wait(ctx) == nil
}

// ChargeAgent counts an event towards the limits of its agent, also a malformed one. An event over
// a limit passes on: later steps answer it.
func (in *Intake) ChargeAgent(e *Arrival) bool {
	in.opt.Limits.enter(&e.Charge, e.Req.Agent, time.Now())
	return true
}

// Release ends an event's share of the limits.
func (in *Intake) Release(e *Arrival) { in.opt.Limits.leave(&e.Charge) }

// AwaitLarge makes a large event wait until it may be under way. If it may not in time, its charge
// records that, and a later step answers it.
func (in *Intake) AwaitLarge(e *Arrival) bool {
	if e.Charge.Over == "" && e.Err == nil && len(e.Msg.Data) >= minLarge && !e.Overdue() {
		if !in.waitForLarge(e) {
			e.Charge.Over = limitBytes
		}
		e.waited = time.Since(e.At)
	}
	return true
}

// waitForLarge waits until a large event may be under way, and reports false if it may not be in
// time. While it waits, it does not count as one of the receiver's calls.
func (in *Intake) waitForLarge(e *Arrival) bool {
	large, share, size := &in.opt.Limits.large, &e.Charge.large, len(e.Msg.Data)
	if large.begin(share, e.Req.Agent, size) {
		return true
	}
	if !large.queue(share, e.Req.Agent, size) {
		return false
	}
	in.BeginBeat(e)
	ctx, cancel := context.WithDeadline(in.ctx, e.At.Add(e.Req.Left/2))
	defer cancel()
	return e.from.park(size, func() bool { return large.wait(ctx, share) })
}

// admit reports whether an event stays in the admission queue. If not, it is answered at once: no
// hook matches it, or it is late.
func (in *Intake) admit(e *Arrival, now time.Time) (stays bool) {
	e.late = true
	in.Decode(e)
	q := e.from.queue
	if e.Err != nil || !bus.IsInbox(e.Msg.Reply) || e.stale() || e.waited > e.Req.Left/2 || e.waited > beforeAgain {
		return false
	}
	if in.opt.Trivial(&e.Req) || q.full(e) || !q.inTime(e.At, now, e.Req.Left) {
		return false
	}
	if !in.opt.Limits.enter(&e.Charge, e.Req.Agent, now) {
		return false // an agent over its limits takes no place from others
	}
	if size := len(e.Msg.Data); size >= minLarge && !in.opt.Limits.large.queue(&e.Charge.large, e.Req.Agent, size) {
		e.Charge.Over = limitBytes
		return false
	}
	e.late, e.until = false, e.At.Add(e.Req.Left/2)
	in.BeginBeat(e)
	return true
}
