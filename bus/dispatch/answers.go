package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// useReply records a worker's reply and reports whether hooks of the batch still have to
// run.
func (r *run) useReply(ctx context.Context, from choice, reply schema.BatchReply) bool {
	switch reply.Status {
	case schema.StatusOK:
	case schema.StatusMismatch, schema.StatusMalformed:
		r.reject(reply.Worker)
		return false
	default: // busy, stale, draining, or a status of a newer version: the worker ran nothing
		r.stale = r.stale || reply.Status == schema.StatusStale
		return from.local || from.member != nil || r.awaitWorker(ctx)
	}
	if len(reply.Outcomes) == 0 || !r.record(reply.Outcomes, reply.Worker) {
		r.failRemaining(schema.Errored, fmt.Sprintf("the worker %q answered without results for the remaining hooks of its batch", clip(reply.Worker)))
		return false
	}
	return r.confirm(ctx, from.local, reply.Worker)
}

// awaitWorker waits for a known worker after the worker that took first contact refused
// the batch.
func (r *run) awaitWorker(ctx context.Context) bool {
	to, wait, err := r.members().await(r.batch.Pool, &r.entry)
	return r.proceed(ctx, to, wait, err)
}

// reject handles a worker that could not read the event. If the event is malformed, the
// call ends. If it is valid, the fault is the worker's, and the hooks fail.
func (r *run) reject(worker string) {
	if _, err := schema.DecodeEvent(r.body, r.call.req.Routing); err != nil {
		v := Malformed(r.call.req.Event, r.call.plan.Guarded, err)
		r.refusal, r.hooks = &v, nil
		return
	}
	r.failRemaining(schema.Errored, fmt.Sprintf("the worker %q rejects a valid event as malformed", clip(worker)))
}

// record takes over outcomes. It reports false if they are not those of the next hooks in
// order.
func (r *run) record(outcomes []schema.Outcome, worker string) bool {
	if len(outcomes) > len(r.hooks) {
		return false
	}
	for i := range outcomes {
		if outcomes[i].Hook != r.hooks[i] {
			return false
		}
	}
	for i := range outcomes {
		o := &outcomes[i]
		o.Worker = worker
		r.add(o)
		r.hooks = r.hooks[1:]
	}
	return true
}

// add applies the failure policy to one outcome and appends the part.
func (r *run) add(o *schema.Outcome) {
	r.parts = append(r.parts, part{hook: o.Hook})
	p := &r.parts[len(r.parts)-1]
	p.kind = settle(r.hook(o.Hook), o, r.trail[:0:1], &p.verdict)
	r.trail = r.trail[1:]
}

// applyRewrites writes the rewrites of the first parts into the body, so that the remaining
// hooks see the current input on another worker.
func (r *run) applyRewrites(parts int) error {
	if r.batch.Readonly {
		return nil
	}
	for i := parts - 1; i >= r.applied; i-- {
		if rw := r.parts[i].verdict.Rewritten(r.call.req.Event); rw != nil {
			body, err := schema.RewriteBody(r.body, r.call.req.Routing, rw)
			if err != nil {
				return err
			}
			r.body = body
			break
		}
	}
	r.applied = parts
	return nil
}

// handleNoReply handles a worker that did not answer. Outcomes from its heartbeats count.
// The remaining hooks run on another worker once, if the batch is idempotent.
func (r *run) handleNoReply(ctx context.Context, to choice, a askResult) bool {
	if errors.Is(a.err, errUnsent) {
		return true
	}
	if errors.Is(a.err, ErrNoWorker) {
		if to.worker == "" {
			if r.members().expecting() {
				return r.awaitWorker(ctx)
			}
			return r.noWorker()
		}
		r.members().Gone(to.worker, r.batch.Pool)
		return true // the batch was not delivered
	}
	lost := ctx.Err() == nil && (errors.Is(a.err, ErrGone) || errors.Is(a.err, ErrSilent))
	again := lost && r.batch.Idempotent && !r.lost && !r.second
	if !r.useProgress(ctx, a, again) {
		return false
	}
	switch {
	case again:
		r.prepareRerun(a.worker, a.err)
		return true
	case lost:
		r.failRemaining(schema.Lost, "was lost: "+a.err.Error())
	case ctx.Err() != nil:
		r.failRemaining(schema.Lost, "the aggregator stopped")
	case errors.Is(a.err, context.DeadlineExceeded):
		r.failRemaining(schema.Deadline, "")
	default:
		r.failRemaining(schema.Lost, fmt.Sprintf("its batch could not be sent to a worker: %v", a.err))
	}
	return false
}

// useProgress records the outcomes from the heartbeats of a worker that did not answer,
// and reports whether hooks still have to run. If the rest runs again, so do the handlers
// that the worker could not load. Otherwise its load errors count.
func (r *run) useProgress(ctx context.Context, a askResult, again bool) bool {
	outcomes := slices.Clone(a.finished)
	if i := slices.IndexFunc(outcomes, func(o schema.Outcome) bool { return o.Kind == schema.LoadError }); again && i >= 0 {
		outcomes = outcomes[:i]
	}
	r.record(outcomes, a.worker)
	return r.confirm(ctx, false, "")
}

// prepareRerun excludes the lost worker, so that the remaining hooks run on another one.
func (r *run) prepareRerun(worker string, err error) {
	r.lost = true
	if worker != "" && !errors.Is(err, errAbsent) {
		r.excluded = append(r.excluded, worker)
	}
	if w := r.call.d.opt.Watch.Rerun; w != nil {
		w(r.batch.Pool, len(r.hooks))
	}
}

// noWorker handles a pool without a worker that may run the batch. It reports whether
// hooks still have to run.
func (r *run) noWorker() bool {
	switch {
	case r.lost:
		r.failRemaining(schema.Lost, "its worker was lost before it answered, and no other worker can run it")
	case r.stale:
		r.failRemaining(schema.NoWorker, fmt.Sprintf("no worker of the pool %q has loaded the configuration", r.batch.Pool))
	default:
		r.failRemaining(schema.NoWorker, fmt.Sprintf("no worker serves the pool %q", r.batch.Pool))
	}
	return false
}

// failRemaining gives the same outcome to every hook that has none, up to the first whose
// failure policy ends the chain.
func (r *run) failRemaining(kind schema.OutcomeKind, why string) {
	if r.second {
		r.hooks = nil // the first worker's load error counts
	}
	for _, i := range r.hooks {
		r.add(&schema.Outcome{Hook: i, Kind: kind, Error: why})
		if r.endsChain(&r.parts[len(r.parts)-1]) {
			break
		}
	}
	r.hooks = nil
}

// endsChain reports whether a part ends the chain.
func (r *run) endsChain(p *part) bool { return r.call.req.Event.Terminal(p.verdict.Decision) }

// confirm checks new parts in order and reports whether hooks still have to run. A handler
// that only one worker lacks is no reason to deny, so a second worker is asked about it.
// Without the worker that made the parts, confirm asks none.
func (r *run) confirm(ctx context.Context, local bool, worker string) bool {
	for ; r.confirmed < len(r.parts); r.confirmed++ {
		p := &r.parts[r.confirmed]
		if p.kind == schema.LoadError && worker != "" && !r.second {
			if !r.askSecondWorker(ctx, p, local, worker) {
				worker = "" // the next parts would wait as long
			}
		}
		if r.refusal != nil || r.endsChain(p) {
			r.hooks = nil
			return false
		}
	}
	return len(r.hooks) > 0
}

// askSecondWorker lets another worker run the hook of a part that is a load error, if there
// is one, and takes its outcome. Without an outcome the load error counts, so that a missing
// guard never allows a call because no other worker could be asked. It reports whether a worker
// answered.
func (r *run) askSecondWorker(ctx context.Context, p *part, local bool, worker string) bool {
	if r.applyRewrites(r.confirmed) != nil {
		return false
	}
	alone := &run{
		call: r.call, batch: r.batch, hooks: []int{p.hook}, body: r.body, until: r.until, entry: r.entry, second: true,
		excluded: append(slices.Clip(r.excluded), worker), noLocal: r.noLocal || local,
	}
	if !alone.mayRunLocally() && !r.members().hasOther(r.batch.Pool, alone.excluded) {
		return false
	}
	alone.acquireBuffer() // not released: its part is in use after it
	for len(alone.hooks) > 0 && alone.step(ctx) {
	}
	r.refusal = alone.refusal
	if len(alone.parts) == 0 {
		return false
	}
	*p = alone.parts[0]
	return true
}
