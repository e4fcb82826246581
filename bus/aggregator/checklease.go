package aggregator

import (
	"context"
	"time"
)

// checkLease ends events while the active configuration is not known to be active any more, or
// workers cannot be reached. Another broker answers them, or the policy of the shim does.
type checkLease struct{ a *Aggregator }

func (s checkLease) pass(e *arrival) bool { return s.a.sure(time.Now(), e, e.req.Left) }

// sure reports whether the lease is fresh and workers can be reached. It waits for both, without
// heartbeats, so that the event may go to another broker during this time.
func (a *Aggregator) sure(now time.Time, e *arrival, limit time.Duration) bool {
	if a.fresh(now) {
		return true
	}
	a.intake.beats.end(e.beat)
	e.beat = nil
	if a.config.unfit.Load() {
		return false
	}
	if e.req.Attempt < 2 {
		limit = min(limit, beforeAgain)
	}
	ctx, cancel := context.WithTimeout(a.life.ctx, limit)
	defer cancel()
	return a.workers.reach.wait(ctx) == nil && (a.opt.Lease == nil || a.opt.Lease.Wait(ctx) == nil)
}

// fresh is sure without the wait.
func (a *Aggregator) fresh(now time.Time) bool {
	return !a.config.unfit.Load() && a.workers.reach.now() && a.leased(now)
}

// leased reports whether a client that changes the configuration or freezes waits for this broker.
func (a *Aggregator) leased(now time.Time) bool { return a.opt.Lease == nil || a.opt.Lease.Fresh(now) }
