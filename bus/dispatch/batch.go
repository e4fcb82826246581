package dispatch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// run is one batch on its way to outcomes, for every hook of it that the chain
// reached. It may go to several workers: busy and stale ones send it back, lost
// ones leave a rest.
type run struct {
	call  *call
	batch *Batch
	hooks []int // those that still have no outcome, in order
	body  []byte
	done  chan struct{}

	// parts are the settled outcomes, in registration order.
	parts []part
	// trail is room for the lines that the next parts leave in the trail.
	trail []schema.ExecutedHook
	// refusal: the event itself is malformed, no hook has an opinion.
	refusal *schema.Verdict

	not     []string // workers that are not asked again
	noLocal bool     // nor is the local one
	lost    bool     // it was lost once already
	second  bool     // a second worker is asked about a handler
	stale   bool     // some worker did not have the config version yet
	// load is what one worker said of a handler that it could not load, while a
	// second one is asked.
	load  *part
	until time.Time
}

// part is the outcome of one hook and what it came to.
type part struct {
	hook    int
	kind    schema.OutcomeKind
	verdict schema.Verdict
}

// do runs the batch. It never panics and never leaves a hook without an outcome.
func (r *run) do(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			r.call.d.opt.Logger.Error("dispatch panicked", "panic", p, "stack", string(debug.Stack()))
			r.rest(schema.Errored, fmt.Sprintf("the dispatcher failed: %v", p))
		}
	}()
	if r.call.req.Attempt > 1 && !r.batch.Idempotent {
		r.rest(schema.Lost, "may have run when the call was asked first; it is not idempotent, so it is not run again")
		return
	}
	if w := r.call.d.opt.Watch.Batch; w != nil {
		w(r.batch.Pool, len(r.hooks))
	}
	start := time.Now()
	r.until = start.Add(r.budget(r.call.req.Deadline.Sub(start)))
	for len(r.hooks) > 0 && r.step(ctx) {
	}
}

// budget is how long the batch may take in all: its hooks' own deadlines with
// room for a worker's margin, and never more than the call has left.
func (r *run) budget(left time.Duration) time.Duration {
	left -= schema.Margin(left)
	var sum time.Duration
	for _, i := range r.hooks {
		sum += r.hook(i).Timeout.Std()
	}
	return min(left, sum+3*schema.Margin(sum)+20*time.Millisecond)
}

func (r *run) hook(i int) *schema.Hook { return &r.call.snap.Config.Hooks[i] }

// step sends what is left of the batch to one worker. It reports whether there
// is something left to do.
func (r *run) step(ctx context.Context) bool {
	o := &r.call.d.opt
	local := r.local()
	if local {
		if reply, ok := o.Local.Try(ctx, r.wire()); ok {
			r.noLocal = reply.Status != schema.StatusOK
			return r.took(ctx, choice{}, reply)
		}
	}
	to, wait, err := o.Members.take(r.batch.Pool, r.call.snap.Config.Version, r.not, local)
	switch {
	case wait != nil:
		return r.queue(ctx, wait)
	case errors.Is(err, ErrNoWorker):
		r.nobody()
		return false
	case err != nil:
		r.rest(schema.Busy, "every worker of its pool is busy and "+err.Error())
		return false
	}
	return r.send(ctx, to)
}

// local reports whether the worker in this process may be asked.
func (r *run) local() bool {
	return r.call.d.opt.Local != nil && r.batch.Pool == schema.DefaultPool && !r.noLocal
}

// queue waits for a worker, within the batch's time.
func (r *run) queue(ctx context.Context, wait chan struct{}) bool {
	start := time.Now()
	timer := time.NewTimer(r.until.Sub(start))
	defer timer.Stop()
	defer func() {
		if w := r.call.d.opt.Watch.Queued; w != nil {
			w(r.batch.Pool, time.Since(start))
		}
	}()
	select {
	case <-wait:
		return true
	case <-timer.C:
		r.call.d.opt.Members.leave(r.batch.Pool, wait)
		if r.stale {
			r.rest(schema.NoWorker, "no worker of its pool took over the configuration before its deadline")
		} else {
			r.rest(schema.Busy, "")
		}
	case <-ctx.Done():
		r.call.d.opt.Members.leave(r.batch.Pool, wait)
		r.rest(schema.Lost, "the aggregator stopped")
	}
	return false
}

// nobody: the pool has no worker to ask (again).
func (r *run) nobody() {
	switch {
	case r.load != nil:
		r.confirmLoad()
	case r.lost:
		r.rest(schema.Lost, "was lost with its worker and there is no other to run it")
	default:
		r.rest(schema.NoWorker, fmt.Sprintf("no worker serves the pool %q", r.batch.Pool))
	}
}

// send asks one worker and waits for its reply, for news of its death, or for
// the end of the batch's time.
func (r *run) send(ctx context.Context, to choice) bool {
	o := &r.call.d.opt
	b := r.wire()
	deadline, stop := context.WithDeadlineCause(ctx, r.until, context.DeadlineExceeded)
	defer stop()
	asking, cancel := context.WithCancelCause(deadline)
	defer cancel(nil)
	f := &flight{
		batch: b.Batch, pool: r.batch.Pool, worker: to.worker,
		idempotent: r.batch.Idempotent, spare: r.local(), cancel: cancel,
	}
	o.Members.launch(f)
	reply, err := o.Caller.Call(asking, r.batch.Pool, to.worker, b)
	finished := o.Members.land(f)
	if to.member != nil {
		o.Members.give(to.member, err == nil && reply.Status != schema.StatusOK || errors.Is(err, ErrNoWorker))
	}
	if err == nil {
		return r.took(ctx, to, reply)
	}
	if cause := context.Cause(asking); cause != nil {
		err = cause
	}
	return r.missed(ctx, to, finished, err)
}

// took uses a worker's reply. It reports whether something is left to do.
func (r *run) took(ctx context.Context, from choice, reply schema.BatchReply) bool {
	switch reply.Status {
	case schema.StatusOK:
	case schema.StatusMismatch, schema.StatusMalformed:
		r.refuse(reply)
		return false
	default: // busy, stale, draining, or a word of a newer peer: it ran nothing
		r.stale = r.stale || reply.Status == schema.StatusStale
		return from.member != nil || r.pause(ctx)
	}
	if !r.keep(reply.Outcomes, reply.Worker) || len(reply.Outcomes) == 0 {
		r.rest(schema.Errored, fmt.Sprintf("the worker %q did not answer for the hooks that it was asked", clip(reply.Worker)))
		return false
	}
	if r.ended() {
		return false
	}
	r.load = nil
	if r.parts[len(r.parts)-1].kind == schema.LoadError {
		return r.secondOpinion(from, reply.Worker)
	}
	return len(r.hooks) > 0
}

// pause waits a little before whoever may be there is asked again.
func (r *run) pause(ctx context.Context) bool {
	wait := r.call.d.opt.Members.await(r.batch.Pool)
	return r.queue(ctx, wait)
}

// refuse: the worker could not read the event.
func (r *run) refuse(reply schema.BatchReply) {
	err := errors.New(reply.Error)
	if reply.Status == schema.StatusMismatch {
		_, decoded := schema.DecodeEvent(r.body, r.call.req.Routing)
		if err = decoded; err == nil {
			r.rest(schema.Errored, fmt.Sprintf("the worker %q calls a sound event malformed", clip(reply.Worker)))
			return
		}
	}
	v := Malformed(r.call.req.Event, r.call.plan.Guarded, err)
	r.refusal, r.hooks = &v, nil
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
	}
	r.hooks = r.hooks[len(outcomes):]
	return true
}

// add settles one outcome.
func (r *run) add(o *schema.Outcome) {
	if r.parts == nil {
		r.parts, r.trail = make([]part, 0, len(r.hooks)), make([]schema.ExecutedHook, len(r.hooks))
	}
	if len(r.trail) == 0 {
		r.trail = make([]schema.ExecutedHook, 1) // a hook that was asked twice
	}
	v := settle(r.hook(o.Hook), o, r.trail[:0:1])
	r.trail = r.trail[1:]
	r.parts = append(r.parts, part{o.Hook, v.ExecutedHooks[0].Outcome, v})
}

// ended reports whether an outcome ended the chain, so that the hooks that are
// left do not run. A handler that could not be loaded here may be elsewhere.
func (r *run) ended() bool {
	for i := range r.parts {
		p := &r.parts[i]
		if p.kind != schema.LoadError && r.call.req.Event.Terminal(p.verdict.Decision) {
			r.hooks = nil
			return true
		}
	}
	return false
}

// secondOpinion asks another worker, if there is one, before a handler counts
// as one that can not be loaded.
func (r *run) secondOpinion(from choice, worker string) bool {
	last := r.parts[len(r.parts)-1]
	agreed := len(r.not) > 0 && r.second
	r.second = !agreed
	r.noLocal = r.noLocal || from.worker == ""
	r.not = append(r.not, worker)
	if agreed || !r.local() && !r.call.d.opt.Members.other(r.batch.Pool, r.not) {
		r.not, r.noLocal, r.second = nil, false, false
		return r.pastLoad()
	}
	r.load = &last
	r.parts = r.parts[:len(r.parts)-1]
	r.hooks = slices.Concat([]int{last.hook}, r.hooks)
	return true
}

// confirmLoad: there is no second worker any more, the first one's word counts.
func (r *run) confirmLoad() {
	r.parts = append(r.parts, *r.load)
	r.hooks = r.hooks[1:]
	if r.pastLoad() {
		r.rest(schema.NoWorker, fmt.Sprintf("no worker serves the pool %q", r.batch.Pool))
	}
}

// pastLoad reports whether hooks are left to run behind one that can not be loaded.
func (r *run) pastLoad() bool {
	if t := r.call.req.Event; t.Terminal(t.Blocking()) {
		r.hooks = nil
	}
	return len(r.hooks) > 0
}

// missed: the worker did not answer. What its beats brought counts; the rest
// runs on another worker once, if it may.
func (r *run) missed(ctx context.Context, to choice, finished []schema.Outcome, err error) bool {
	if errors.Is(err, ErrNoWorker) {
		if to.worker == "" {
			r.nobody()
			return false
		}
		r.call.d.opt.Members.Gone(to.worker)
		return true // it was never delivered
	}
	r.keep(slices.Clone(finished), to.worker)
	if r.ended() {
		return false
	}
	switch {
	case ctx.Err() != nil:
		r.rest(schema.Lost, "the aggregator stopped")
	case errors.Is(err, ErrGone), errors.Is(err, ErrSilent):
		return r.rerun(to.worker, err)
	case errors.Is(err, context.DeadlineExceeded):
		r.rest(schema.Deadline, "")
	default:
		r.rest(schema.Lost, fmt.Sprintf("could not be asked: %v", err))
	}
	return false
}

func (r *run) rerun(worker string, err error) bool {
	if len(r.hooks) == 0 {
		return false
	}
	if !r.batch.Idempotent || r.lost {
		r.rest(schema.Lost, "was lost: "+err.Error())
		return false
	}
	r.lost = true
	if worker != "" && !errors.Is(err, errAbsent) {
		r.not = append(r.not, worker)
	}
	if w := r.call.d.opt.Watch.Rerun; w != nil {
		w(r.batch.Pool, len(r.hooks))
	}
	return true
}

// rest gives every hook that has no outcome yet the same one, up to the first
// whose failure ends the chain.
func (r *run) rest(kind schema.OutcomeKind, why string) {
	for _, i := range r.hooks {
		r.add(&schema.Outcome{Hook: i, Kind: kind, Error: why})
		if r.ended() {
			break
		}
	}
	r.hooks = nil
}

// wire is the batch as workers get it, with the time that is left now.
func (r *run) wire() *schema.Batch {
	return &schema.Batch{
		Routing: r.call.req.Routing,
		Batch:   r.call.d.opt.NewID(),
		Version: r.call.snap.Config.Version,
		Hooks:   r.hooks,
		Left:    time.Until(r.until),
		Body:    r.body,
	}
}
