package dispatch

import (
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// secondOpinion is the state of a batch while a second worker is asked about a handler
// that the first could not load. A handler that only one worker lacks is no reason to
// deny.
type secondOpinion struct {
	worker string // the worker that could not load it
	local  bool   // it is the worker in this process
	first  part   // the load error
	behind []part // parts of hooks that ran after it
	hooks  []int  // hooks that run afterwards
	// excluded and noLocal are the values of the run before.
	excluded []string
	noLocal  bool
}

// advance checks new parts in order and reports whether hooks still have to run: the
// remaining hooks, or one for a second opinion. Without a worker, no second opinion is
// asked for.
func (r *run) advance(local bool, worker string) bool {
	if d := r.opinion; d != nil && len(r.hooks) == 0 {
		r.resolveOpinion()
		local, worker = d.local, d.worker
	}
	for ; r.confirmed < len(r.parts); r.confirmed++ {
		p := &r.parts[r.confirmed]
		if p.kind == schema.LoadError && worker != "" && r.askSecondWorker(local, worker) {
			return true
		}
		if r.endsChain(p) {
			r.hooks = nil
			return false
		}
	}
	return len(r.hooks) > 0
}

// askSecondWorker prepares asking another worker about the first part that is not
// confirmed. It reports whether there is one.
func (r *run) askSecondWorker(local bool, worker string) bool {
	before := &secondOpinion{
		worker: worker, local: local, first: r.parts[r.confirmed], behind: slices.Clone(r.parts[r.confirmed+1:]), hooks: r.hooks,
		excluded: r.excluded, noLocal: r.noLocal,
	}
	r.excluded, r.noLocal = append(slices.Clip(r.excluded), worker), r.noLocal || local
	if !r.mayRunLocally() && !r.members().hasOther(r.batch.Pool, r.excluded) {
		r.excluded, r.noLocal = before.excluded, before.noLocal
		return false
	}
	r.opinion, r.parts, r.hooks = before, r.parts[:r.confirmed], []int{before.first.hook}
	return true
}

// resolveOpinion ends a second opinion with the answer that is now the last part.
func (r *run) resolveOpinion() {
	d := r.opinion
	r.opinion, r.hooks, r.excluded, r.noLocal = nil, d.hooks, d.excluded, d.noLocal
	last := &r.parts[len(r.parts)-1]
	if last.kind == schema.LoadError {
		r.confirmed = len(r.parts) // both workers agree
		if r.endsChain(last) {
			r.hooks = nil
		}
	}
	r.parts = append(r.parts, d.behind...)
}

// keepFirstOpinion ends a second opinion without an answer. The load error counts, so
// that a missing guard never allows a call because no other worker could be asked.
func (r *run) keepFirstOpinion() bool {
	r.parts = append(r.parts, r.opinion.first)
	r.resolveOpinion()
	return r.advance(false, "")
}
