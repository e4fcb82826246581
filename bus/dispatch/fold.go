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
	if t.Terminal(a.Decision) {
		return a
	}
	out := b
	out.ExecutedHooks = join(a.ExecutedHooks, b.ExecutedHooks)
	out.HookErrors = join(a.HookErrors, b.HookErrors)
	out.Injections = join(a.Injections, b.Injections)
	if t.Terminal(b.Decision) {
		return out
	}
	out.Effects = join(a.Effects, b.Effects)
	out.UpdatedInput = later(a.UpdatedInput, b.UpdatedInput)
	out.UpdatedOutput = later(a.UpdatedOutput, b.UpdatedOutput)
	out.Value = later(a.Value, b.Value)
	switch ra, rb := rank(a.Decision), rank(b.Decision); {
	case ra > rb:
		out.Decision, out.Reason, out.AutoApprove = a.Decision, a.Reason, a.AutoApprove
	case ra == rb && ra > 0:
		out.Reason, out.AutoApprove = a.Reason, a.AutoApprove || b.AutoApprove
	}
	return out
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

// join concatenates without ever writing into either side's memory.
func join[T any](a, b []T) []T {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	return slices.Concat(a, b)
}

// later is the later of two rewrites: its hook has seen the earlier one.
func later[T ~[]byte](a, b T) T {
	if b != nil {
		return b
	}
	return a
}
