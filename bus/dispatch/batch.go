package dispatch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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

	// room is where all of it lies that comes of the batch.
	room *room
	// parts are the settled outcomes, in registration order.
	parts []part
	// trail is room for the lines that the next parts leave in the trail.
	trail []schema.ExecutedHook
	// refusal: the event itself is malformed, no hook has an opinion.
	refusal *schema.Verdict

	not     []string // workers that are not asked again
	noLocal bool     // nor is the local one
	turn    turn     // its place in the pool's queue
	lost    bool     // it was lost once already
	stale   bool     // some worker did not have the config version yet
	doubt   *doubt   // a second worker is asked about a handler
	sure    int      // so many parts need no second opinion
	carried int      // what so many parts rewrote is in body
	until   time.Time
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
	r.enter()
	if why := r.call.req.Shed; why != "" {
		r.rest(schema.Busy, why)
		return
	}
	if r.call.req.Attempt > 1 && !r.batch.Idempotent {
		r.rest(schema.Lost, "may have run at the first attempt of this call; it is not idempotent, so it does not run again")
		return
	}
	now := time.Now()
	left := r.call.until.Sub(now)
	if left <= 0 {
		r.rest(schema.Deadline, "the call's deadline passed before the hook could run")
		return
	}
	if w := r.call.d.opt.Watch.Batch; w != nil {
		w(r.batch.Pool, len(r.hooks))
	}
	r.until = now.Add(r.budget(left))
	r.turn.until = r.until
	for len(r.hooks) > 0 && r.step(ctx) {
	}
}

// enter takes a room for what comes of the batch.
func (r *run) enter() {
	r.room = r.call.d.rooms.take(len(r.hooks))
	r.parts, r.trail = r.room.parts[:0], r.room.trail
}

// leave gives the room back. Nobody may have anything any more that lies in it.
func (r *run) leave() {
	r.call.d.rooms.put(r.room)
	r.room, r.parts, r.trail = nil, nil, nil
}

// budget is how long the batch may take in all: its hooks' own deadlines with
// room for a worker's margin, and never more than the call has left.
func (r *run) budget(left time.Duration) time.Duration {
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
	if err := r.carry(); err != nil {
		r.rest(schema.Errored, "the batch cannot be prepared for its worker: "+err.Error())
		return false
	}
	if again, ok := r.tryLocal(ctx); ok {
		return again
	}
	r.turn.version, r.turn.not = r.call.snap.Config.Version, r.not
	to, wait, err := r.members().take(r.batch.Pool, &r.turn)
	return r.proceed(ctx, to, wait, err)
}

// tryLocal runs the batch in this process, if that may be and a slot is free
// there. It reports whether it did, and whether something is left to do.
func (r *run) tryLocal(ctx context.Context) (again, ok bool) {
	if r.turn.local = r.local(); !r.turn.local {
		return false, false
	}
	r.turn.freed = r.members().freed.Load()
	b := r.wire()
	span := r.span(&b)
	reply, ok := r.call.d.opt.Local.Try(ctx, &b)
	if !ok {
		return false, false // nobody was asked, so that nothing is told
	}
	replied(span, &reply, nil)
	r.noLocal = reply.Status != schema.StatusOK
	return r.took(ctx, choice{local: true}, reply), true
}

// local reports whether the worker in this process may be asked.
func (r *run) local() bool {
	return r.call.d.opt.Local != nil && r.batch.Pool == schema.DefaultPool && !r.noLocal
}

func (r *run) members() *Members { return r.call.d.opt.Members }

// proceed does what the table of workers said: wait, give up, or send.
func (r *run) proceed(ctx context.Context, to choice, wait bool, err error) bool {
	switch {
	case errors.Is(err, ErrNoWorker):
		return r.nobody()
	case err != nil:
		r.rest(schema.Busy, "every worker of its pool is busy and "+err.Error())
		return false
	case to.local:
		return true
	case wait:
		return r.queue(ctx)
	}
	return r.send(ctx, to)
}

// queue waits for a worker, within the batch's time.
func (r *run) queue(ctx context.Context) bool {
	to, ok := r.waitTurn(ctx)
	switch {
	case ok && to.member != nil:
		return r.send(ctx, to)
	case ok:
		return true
	case ctx.Err() != nil:
		r.rest(schema.Lost, "the aggregator stopped")
	case r.stale:
		r.rest(schema.NoWorker, "no worker of its pool loaded the configuration before the hook's deadline")
	default:
		r.rest(schema.Busy, "")
	}
	return false
}

// waitTurn waits until the queue has something for the call.
func (r *run) waitTurn(ctx context.Context) (to choice, ok bool) {
	start := time.Now()
	timer := time.NewTimer(r.until.Sub(start))
	defer timer.Stop()
	defer func() {
		if w := r.call.d.opt.Watch.Queued; w != nil {
			w(r.batch.Pool, time.Since(start))
		}
	}()
	r.call.req.waiting(1)
	defer r.call.req.waiting(-1)
	select {
	case to = <-r.turn.got:
		return to, true
	case <-timer.C:
	case <-ctx.Done():
	}
	r.members().leave(r.batch.Pool, &r.turn)
	return choice{}, false
}

// send asks one worker and waits for its reply, for news of its death, or for
// the end of the batch's time.
func (r *run) send(ctx context.Context, to choice) bool {
	asking, stop := context.WithDeadline(ctx, r.until)
	defer stop()
	f := &flight{
		wire: r.wire(), pool: r.batch.Pool, worker: to.worker,
		idempotent: r.batch.Idempotent, spare: r.local(), stop: stop,
	}
	span := r.span(&f.wire)
	a := r.ask(asking, to, f)
	replied(span, &a.reply, a.err)
	if a.err == nil {
		return r.took(ctx, to, a.reply)
	}
	if cause := context.Cause(asking); cause != nil {
		a.err = cause
		if f.lost != nil && errors.Is(cause, context.Canceled) {
			a.err = f.lost
		}
	}
	return r.missed(ctx, to, a)
}

// asked is what came of asking one worker.
type asked struct {
	reply schema.BatchReply
	err   error
	// worker is who had the batch, as far as is known, and finished the
	// outcomes that its beats brought.
	worker   string
	finished []schema.Outcome
}

// ask calls one worker. Whatever becomes of the call, its slot is given back.
func (r *run) ask(ctx context.Context, to choice, f *flight) (a asked) {
	m := r.members()
	defer func() {
		a.worker, a.finished = m.land(f)
		if to.member != nil {
			m.give(to.member, f.wire.Version, a.reply.Status)
		}
	}()
	if !m.launch(f, to.member) {
		a.err = errUnsent
		return a
	}
	r.call.req.waiting(1)
	defer r.call.req.waiting(-1)
	a.reply, a.err = r.call.d.opt.Caller.Call(ctx, f.pool, to.worker, &f.wire)
	return a
}

// wire is the batch as workers get it, with the time that is left now.
func (r *run) wire() schema.Batch {
	return schema.Batch{
		Routing: r.call.req.Routing,
		Batch:   r.call.d.opt.NewID(),
		Version: r.call.snap.Config.Version,
		Fabric:  r.call.snap.Config.Fabric,
		Hooks:   r.hooks,
		Left:    time.Until(r.until),
		Body:    r.body,
		Room:    r.room.outcomes,
	}
}
