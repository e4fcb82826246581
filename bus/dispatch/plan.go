package dispatch

import (
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// A Plan is what runs for one event: waves one after the other, and the shadow
// hooks off the path. It is a value that can be printed.
type Plan struct {
	// Waves run one after the other.
	Waves []Wave
	// Shadow batches run off the path.
	Shadow []Batch
	// Guarded: some fail-closed hook is among them.
	Guarded bool
	// Deliver are the hooks that hand items over, and Gates those that refuse
	// tools by the agent's round. They are stages of the aggregator: no wave
	// has them.
	Deliver, Gates []int
}

// A Wave is batches that run side by side.
type Wave []Batch

// A Batch is consecutive hooks of one pool that travel in one request.
type Batch struct {
	Pool       string
	Idempotent bool
	// Readonly: no hook of it rewrites, so that it may run beside its neighbours.
	Readonly bool
	// Conditional: some hook of it has a condition.
	Conditional bool
	// Hooks are indexes into the configuration, in registration order.
	Hooks []int
}

// Empty reports whether nothing runs at all.
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

// plan makes the plan of one event: global hooks in registration order, then
// the agent's own, which is the order of the configuration. Only hooks
// registered before that one come into waves.
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
			// By itself: what one shadow hook says must not hide the next one.
			shadow = append(shadow, batchOf(i, h))
		case i < before:
			path = appendHook(path, i, h)
		}
	}
	p.Waves, p.Shadow = waves(path), shadow
	return p
}

// appendHook puts a hook into the last batch if it fits there: same pool, same
// idempotence, and a condition never behind a rewriter, so that it sees the
// input as the hooks before left it.
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

// waves puts neighbouring batches side by side where none of them rewrites.
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
