package dispatch

import (
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// Fold joins what two neighbouring runs of hooks came to, a's hooks registered
// before b's, for an event of type t.
//
// It is associative and the zero Verdict is its unit, so that a worker may
// fold its batch and the aggregator the batches, in whatever groups they come.
// Where the event chains, a terminal verdict is a left zero: nothing registered
// after it counts, and of what was registered before it only the trail stays:
// executed hooks, errors and injections. Elsewhere nothing is ever dropped.
func Fold(t schema.EventType, a, b schema.Verdict) schema.Verdict {
	// Clipped, the first append moves to memory of its own.
	a.ExecutedHooks, a.HookErrors = slices.Clip(a.ExecutedHooks), slices.Clip(a.HookErrors)
	a.Injections, a.Effects = slices.Clip(a.Injections), slices.Clip(a.Effects)
	b.Effects = slices.Clip(b.Effects)
	fold(t, &a, &b)
	return a
}

// fold is Fold into sum, whose slices belong to the caller alone.
func fold(t schema.EventType, sum, b *schema.Verdict) {
	if t.Terminal(sum.Decision) {
		return
	}
	sum.ExecutedHooks = append(sum.ExecutedHooks, b.ExecutedHooks...)
	sum.HookErrors = append(sum.HookErrors, b.HookErrors...)
	sum.Injections = append(sum.Injections, b.Injections...)
	if t.Terminal(b.Decision) {
		end := *b
		end.ExecutedHooks, end.HookErrors, end.Injections = sum.ExecutedHooks, sum.HookErrors, sum.Injections
		*sum = end
		return
	}
	sum.Effects = append(sum.Effects, b.Effects...)
	sum.UpdatedInput = later(sum.UpdatedInput, b.UpdatedInput)
	sum.UpdatedOutput = later(sum.UpdatedOutput, b.UpdatedOutput)
	sum.Value = later(sum.Value, b.Value)
	switch rs, rb := rank(sum.Decision), rank(b.Decision); {
	case rs < rb:
		sum.Decision, sum.Reason, sum.AutoApprove = b.Decision, b.Reason, b.AutoApprove
	case rs == rb && rs > 0:
		sum.AutoApprove = sum.AutoApprove || b.AutoApprove
	}
}

// rank orders the decisions that do not end a chain: the greatest wins, the
// first of equals keeps its reason. Ask and allow never meet deny and fail
// here, because those end a chain where ask and allow exist.
func rank(d schema.Decision) int {
	switch d {
	case schema.Allow:
		return 1
	case schema.Ask, schema.Deny:
		return 2
	case schema.Fail:
		return 3
	}
	return 0
}

// later is the later of two rewrites: its hook has seen the earlier one.
func later[T ~[]byte](a, b T) T {
	if b != nil {
		return b
	}
	return a
}
