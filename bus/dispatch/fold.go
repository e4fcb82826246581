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
// A verdict that ends the chain is a left zero: nothing registered after it counts.
// Where the event chains, of what was registered before it only the trail stays:
// executed hooks, errors and injections. Elsewhere only a stop ends the chain, and
// nothing before it is dropped.
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
	if sum.Ended(t) {
		return
	}
	sum.ExecutedHooks = append(sum.ExecutedHooks, b.ExecutedHooks...)
	sum.HookErrors = append(sum.HookErrors, b.HookErrors...)
	sum.Injections = append(sum.Injections, b.Injections...)
	if t.Chains() && t.Terminal(b.Decision) {
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

// KeepFeedback adds to a verdict, where a deny is feedback, the reasons of those hooks
// whose deny gave way to a fail, a stop or an earlier deny. They are injections behind
// those of the hooks, so that the agent reads them. KeepFeedback is called after the last
// fold, and adds each reason once, however often it is called.
func KeepFeedback(t schema.EventType, v *schema.Verdict) {
	if t.Chains() {
		return
	}
	for i := range v.ExecutedHooks {
		row := &v.ExecutedHooks[i]
		if row.Decision != schema.Deny || row.Reason == "" || v.Decision == schema.Deny && row.Reason == v.Reason {
			continue
		}
		same := func(in schema.Injection) bool { return in.Hook == row.Hook && in.Content == row.Reason }
		if !slices.ContainsFunc(v.Injections, same) {
			v.Injections = append(v.Injections, schema.Injection{Content: row.Reason, Strategy: schema.ToolResult, Hook: row.Hook})
		}
	}
}

// rank orders the decisions that drop nothing: the greatest wins, the first of
// equals keeps its reason. Ask and allow never meet deny, stop and fail here,
// because those end a chain where ask and allow exist. A stop does not undo a fail.
func rank(d schema.Decision) int {
	switch d {
	case schema.Allow:
		return 1
	case schema.Ask, schema.Deny:
		return 2
	case schema.Stop:
		return 3
	case schema.Fail:
		return 4
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
