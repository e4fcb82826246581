package dispatch

import (
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// doubt is a handler that one worker could not load, while a second one is
// asked: a handler that only one of them lacks is no reason to deny.
type doubt struct {
	worker string // who could not load it
	local  bool   // it is the one in this process
	first  part   // what it said
	behind []part // outcomes of hooks that ran beside it
	hooks  []int  // hooks that run afterwards
	// not and noLocal are as they were before.
	not     []string
	noLocal bool
}

// advance looks at the outcomes that a worker brought, in order, and reports
// whether something is left to do: hooks to run, or a second opinion to get.
// None is got about outcomes of nobody.
func (r *run) advance(local bool, worker string) bool {
	if d := r.doubt; d != nil && len(r.hooks) == 0 {
		r.settled()
		local, worker = d.local, d.worker
	}
	for ; r.sure < len(r.parts); r.sure++ {
		p := &r.parts[r.sure]
		if p.kind == schema.LoadError && worker != "" && r.secondOpinion(local, worker) {
			return true
		}
		if r.ends(p) {
			r.hooks = nil
			return false
		}
	}
	return len(r.hooks) > 0
}

// secondOpinion begins to ask another worker, if there is one, about the first
// part that is not sure.
func (r *run) secondOpinion(local bool, worker string) bool {
	before := &doubt{
		worker: worker, local: local, first: r.parts[r.sure], behind: slices.Clone(r.parts[r.sure+1:]), hooks: r.hooks,
		not: r.not, noLocal: r.noLocal,
	}
	r.not, r.noLocal = append(slices.Clip(r.not), worker), r.noLocal || local
	if !r.local() && !r.members().other(r.batch.Pool, r.not) {
		r.not, r.noLocal = before.not, before.noLocal
		return false
	}
	r.doubt, r.parts, r.hooks = before, r.parts[:r.sure], []int{before.first.hook}
	return true
}

// settled ends a doubt with the answer that is now the last part.
func (r *run) settled() {
	d := r.doubt
	r.doubt, r.hooks, r.not, r.noLocal = nil, d.hooks, d.not, d.noLocal
	last := &r.parts[len(r.parts)-1]
	if last.kind == schema.LoadError {
		r.sure = len(r.parts) // both agree
		if r.ends(last) {
			r.hooks = nil
		}
	}
	r.parts = append(r.parts, d.behind...)
}

// firstWord ends a doubt without a second opinion: the first worker's word
// counts, so that a guard that is missing never opens the way because nobody
// could be asked about it.
func (r *run) firstWord() bool {
	r.parts = append(r.parts, r.doubt.first)
	r.settled()
	return r.advance(false, "")
}
