package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// took uses a worker's reply. It reports whether something is left to do.
func (r *run) took(ctx context.Context, from choice, reply schema.BatchReply) bool {
	switch reply.Status {
	case schema.StatusOK:
	case schema.StatusMismatch, schema.StatusMalformed:
		r.refuse(reply.Worker)
		return false
	default: // busy, stale, draining, or a word of a newer peer: it ran nothing
		r.stale = r.stale || reply.Status == schema.StatusStale
		return from.local || from.member != nil || r.pause(ctx)
	}
	if len(reply.Outcomes) == 0 || !r.keep(reply.Outcomes, reply.Worker) {
		r.rest(schema.Errored, fmt.Sprintf("the worker %q answered without results for the remaining hooks of its batch", clip(reply.Worker)))
		return false
	}
	return r.advance(from.local, reply.Worker)
}

// pause waits until a worker of the pool is known: whoever was there refused.
func (r *run) pause(ctx context.Context) bool {
	to, wait, err := r.members().await(r.batch.Pool, &r.turn)
	return r.proceed(ctx, to, wait, err)
}

// refuse: the worker could not read the event. That is no reason for the other
// hooks not to be asked, unless it is true.
func (r *run) refuse(worker string) {
	if _, err := schema.DecodeEvent(r.body, r.call.req.Routing); err != nil {
		v := Malformed(r.call.req.Event, r.call.plan.Guarded, err)
		r.refusal, r.hooks = &v, nil
		return
	}
	r.rest(schema.Errored, fmt.Sprintf("the worker %q rejects a valid event as malformed", clip(worker)))
}

// keep takes over outcomes, which must be those of the next hooks in order.
func (r *run) keep(outcomes []schema.Outcome, worker string) bool {
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

// add settles one outcome.
func (r *run) add(o *schema.Outcome) {
	if len(r.trail) == 0 {
		r.trail = make([]schema.ExecutedHook, 1) // a hook that was asked twice
	}
	r.parts = append(r.parts, part{hook: o.Hook})
	p := &r.parts[len(r.parts)-1]
	p.kind = settle(r.hook(o.Hook), o, r.trail[:0:1], &p.verdict)
	r.trail = r.trail[1:]
}

// carry puts what the hooks so far rewrote into the body, so that those that
// are asked from here on, elsewhere, see the input as the ones before left it.
func (r *run) carry() error {
	if r.batch.Readonly {
		return nil
	}
	for i := len(r.parts) - 1; i >= r.carried; i-- {
		if rw := r.parts[i].verdict.Rewritten(r.call.req.Event); rw != nil {
			body, err := schema.RewriteBody(r.body, r.call.req.Routing, rw)
			if err != nil {
				return err
			}
			r.body = body
			break
		}
	}
	r.carried = len(r.parts)
	return nil
}

// missed: the worker did not answer. What its beats brought counts; the rest
// runs on another worker once, if it may.
func (r *run) missed(ctx context.Context, to choice, a asked) bool {
	if errors.Is(a.err, errUnsent) {
		return true
	}
	if errors.Is(a.err, ErrNoWorker) {
		if to.worker == "" {
			// It may have to come back to a bus that was restarted.
			to, wait, err := r.members().expect(r.batch.Pool, &r.turn)
			return r.proceed(ctx, to, wait, err)
		}
		r.members().Gone(to.worker, r.batch.Pool)
		return true // it was never delivered
	}
	lost := ctx.Err() == nil && (errors.Is(a.err, ErrGone) || errors.Is(a.err, ErrSilent))
	second := r.doubt != nil // then nothing but that second opinion was lost
	again := lost && r.batch.Idempotent && !r.lost && !second
	if !r.finished(a, again) {
		return false
	}
	switch {
	case again:
		r.rerun(a.worker, a.err)
		return true
	case lost && second:
		return r.doubt == nil || r.firstWord()
	case lost:
		r.rest(schema.Lost, "was lost: "+a.err.Error())
	case ctx.Err() != nil:
		r.rest(schema.Lost, "the aggregator stopped")
	case errors.Is(a.err, context.DeadlineExceeded):
		r.rest(schema.Deadline, "")
	default:
		r.rest(schema.Lost, fmt.Sprintf("its batch could not be sent to a worker: %v", a.err))
	}
	return false
}

// finished takes over what the beats of a worker brought that did not answer,
// and reports whether something is left to do. When the rest is asked again,
// so are the handlers that it could not load; else its word about them counts.
func (r *run) finished(a asked, again bool) bool {
	outcomes := slices.Clone(a.finished)
	if i := slices.IndexFunc(outcomes, func(o schema.Outcome) bool { return o.Kind == schema.LoadError }); again && i >= 0 {
		outcomes = outcomes[:i]
	}
	r.keep(outcomes, a.worker)
	return r.advance(false, "")
}

// rerun has what is left run on another worker.
func (r *run) rerun(worker string, err error) {
	r.lost = true
	if worker != "" && !errors.Is(err, errAbsent) {
		r.not = append(r.not, worker)
	}
	if w := r.call.d.opt.Watch.Rerun; w != nil {
		w(r.batch.Pool, len(r.hooks))
	}
}

// nobody: the pool has no worker to ask (again). It reports whether something
// is left to do all the same.
func (r *run) nobody() bool {
	switch {
	case r.doubt != nil:
		return r.firstWord()
	case r.lost:
		r.rest(schema.Lost, "its worker was lost before it answered, and no other worker can run it")
	case r.stale:
		r.rest(schema.NoWorker, fmt.Sprintf("no worker of the pool %q has loaded the configuration", r.batch.Pool))
	default:
		r.rest(schema.NoWorker, fmt.Sprintf("no worker serves the pool %q", r.batch.Pool))
	}
	return false
}

// rest gives every hook that has no outcome yet the same one, up to the first
// whose failure ends the chain.
func (r *run) rest(kind schema.OutcomeKind, why string) {
	if r.doubt != nil {
		r.firstWord()
	}
	for _, i := range r.hooks {
		r.add(&schema.Outcome{Hook: i, Kind: kind, Error: why})
		if r.ends(&r.parts[len(r.parts)-1]) {
			break
		}
	}
	r.hooks = nil
}

// ends reports whether a part ends the chain.
func (r *run) ends(p *part) bool { return r.call.req.Event.Terminal(p.verdict.Decision) }
