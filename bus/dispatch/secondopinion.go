package dispatch

import (
	"context"
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

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
