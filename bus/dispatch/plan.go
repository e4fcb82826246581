package dispatch

import (
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// A Plan is the hooks for one event: waves that run one after the other, and shadow hooks
// that no verdict waits for. String prints it.
type Plan struct {
	// Waves run one after the other.
	Waves []Wave
	// Shadow batches run after the verdict.
	Shadow []Batch
	// Guarded means that the plan has a fail-closed hook.
	Guarded bool
	// Deliver are the delivery hooks, and Gates the hooks that refuse tools by the
	// agent's round. They are stages of the aggregator and not in waves.
	Deliver, Gates []int
}

// A Wave has batches that run side by side.
type Wave []Batch

// A Batch has consecutive hooks of one pool that travel in one request.
type Batch struct {
	Pool       string
	Idempotent bool
	// Readonly means that no hook of it rewrites, so that it may run beside its
	// neighbours.
	Readonly bool
	// Conditional means that some hook of it has a condition.
	Conditional bool
	// Hooks are indexes into the configuration, in registration order.
	Hooks []int
}

// Empty reports whether no hook runs.
func (p *Plan) Empty() bool { return len(p.Waves) == 0 && len(p.Shadow) == 0 }

// String prints a plan as waves of pools with their hooks.
func (p *Plan) String() string {
	var b strings.Builder
	for i, w := range p.Waves {
		if i > 0 {
			b.WriteString(" → ")
		}
		for j, batch := range w {
			if j > 0 {
				b.WriteString(" ∥ ")
			}
			fmt.Fprintf(&b, "%s%v", batch.Pool, batch.Hooks)
		}
	}
	for _, batch := range p.Shadow {
		fmt.Fprintf(&b, " (shadow %s%v)", batch.Pool, batch.Hooks)
	}
	if len(p.Gates) > 0 {
		fmt.Fprintf(&b, " (gates %v)", p.Gates)
	}
	if len(p.Deliver) > 0 {
		fmt.Fprintf(&b, " (delivers %v)", p.Deliver)
	}
	return b.String()
}

// plan makes the plan of one event in the order of the configuration: global hooks, then
// the agent's own. Only hooks with an index below before come into waves.
func (s *Snapshot) plan(sc *scope, key planKey, before int) *Plan {
	p := &Plan{}
	var path, shadow []Batch
	for _, i := range s.rules.Asked(sc.own, key.event, key.tool) {
		h := &s.Config.Hooks[i]
		p.Guarded = p.Guarded || s.rules.Guards(i)
		switch {
		case h.Stage():
			s.addStage(p, i)
		case h.Mode == schema.Shadow:
			// Each shadow hook has its own batch, so that its answer does not hide the
			// next hook.
			shadow = append(shadow, batchOf(i, h))
		case i < before:
			path = appendHook(path, i, h)
		}
	}
	p.Waves, p.Shadow = waves(path), shadow
	return p
}

// appendHook puts a hook into the last batch if the pool and idempotence are equal and
// its condition does not follow a rewriting hook. Conditions are evaluated before a batch
// runs, and must see the rewritten input.
func appendHook(batches []Batch, i int, h *schema.Hook) []Batch {
	if n := len(batches); n > 0 {
		b := &batches[n-1]
		if b.Pool == h.Pool && b.Idempotent == h.Idempotent && (h.When == "" || b.Readonly) {
			b.Hooks = append(b.Hooks, i)
			b.Readonly = b.Readonly && h.Readonly
			b.Conditional = b.Conditional || h.When != ""
			return batches
		}
	}
	return append(batches, batchOf(i, h))
}

func batchOf(i int, h *schema.Hook) Batch {
	return Batch{
		Pool: h.Pool, Idempotent: h.Idempotent, Readonly: h.Readonly,
		Conditional: h.When != "", Hooks: []int{i},
	}
}

// waves puts neighbouring readonly batches side by side.
func waves(batches []Batch) []Wave {
	var ws []Wave
	for i, b := range batches {
		if i > 0 && b.Readonly && batches[i-1].Readonly {
			ws[len(ws)-1] = append(ws[len(ws)-1], b)
			continue
		}
		ws = append(ws, Wave{b})
	}
	return ws
}
