package dispatch

import (
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// Fold joins the verdicts of two neighbouring groups of hooks for an event of type t. The
// hooks of a are registered before those of b.
//
// Fold is associative and the zero Verdict is its unit, so that a worker may fold its
// batch and the aggregator the batches, in any grouping. A verdict that ends the chain is
// a left zero: nothing registered after it counts. At events that chain, only executed
// hooks, errors and injections remain of the hooks before it. At other events only a stop
// ends the chain, and nothing before it is dropped.
func Fold(t schema.EventType, a, b schema.Verdict) schema.Verdict {
	// Clip makes append allocate, so that Fold does not write into its arguments.
	a.ExecutedHooks, a.HookErrors = slices.Clip(a.ExecutedHooks), slices.Clip(a.HookErrors)
	a.Injections, a.Effects = slices.Clip(a.Injections), slices.Clip(a.Effects)
	b.Effects = slices.Clip(b.Effects)
	fold(t, &a, &b)
	return a
}

// fold is Fold into sum. The caller must be the only user of sum's slices.
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
	sum.UpdatedInput = lastRewrite(sum.UpdatedInput, b.UpdatedInput)
	sum.UpdatedOutput = lastRewrite(sum.UpdatedOutput, b.UpdatedOutput)
	sum.Value = lastRewrite(sum.Value, b.Value)
	switch rs, rb := rank(sum.Decision), rank(b.Decision); {
	case rs < rb:
		sum.Decision, sum.Reason, sum.AutoApprove = b.Decision, b.Reason, b.AutoApprove
	case rs == rb && rs > 0:
		sum.AutoApprove = sum.AutoApprove || b.AutoApprove
	}
}

// KeepFeedback adds reasons of denies to a verdict of an event where a deny is feedback:
// of each hook whose deny gave way to a fail, a stop or an earlier deny. They become
// injections after those of the hooks, so that the agent reads them. KeepFeedback is
// called after the last fold, and is idempotent.
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

// rank orders the decisions that drop nothing: the greatest wins, and among equals the
// first. Ask and allow never meet deny, stop and fail here, because those end the chain
// at events with ask and allow. A fail outranks a stop.
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

// lastRewrite returns b, or a if there is no b. The hook of b saw a's rewrite.
func lastRewrite[T ~[]byte](a, b T) T {
	if b != nil {
		return b
	}
	return a
}
