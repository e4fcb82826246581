package model

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// Fold combines two adjacent results, a before b in registration order. It is associative, and the
// zero [Part] is its unit. Adjacent results may therefore be folded in any grouping.
func Fold(t schema.EventType, a, b Part) Part {
	r := ruleOf(t)
	if r.terminal(a.Decision) || stopped(a) {
		return a // later results do not count, and results of hooks that ran at the same time are dropped
	}
	out := weigh(a, b)
	if r.chain && r.terminal(b.Decision) {
		out = b // of the results before b, only the trail, the errors and the injections stay
	}
	out.Injections = slices.Concat(a.Injections, b.Injections)
	out.ExecutedHooks = slices.Concat(a.ExecutedHooks, b.ExecutedHooks)
	out.HookErrors = slices.Concat(a.HookErrors, b.HookErrors)
	return out
}

// stopped reports whether a stop came after a fail that did not end the chain. The fail stays.
func stopped(p Part) bool {
	n := len(p.ExecutedHooks)
	return p.Decision == schema.Fail && n > 0 && p.ExecutedHooks[n-1].Decision == schema.Stop
}

// weigh combines decisions, rewrites and effects. The greater decision wins with its reason, and
// the first of equals. The later rewrite wins, because its hook saw the earlier one. Effects add
// up.
func weigh(a, b Part) Part {
	greater := a
	if rank(b.Decision) > rank(a.Decision) {
		greater = b
	}
	out := Part{OwnWords: greater.OwnWords}
	out.Decision, out.Reason = greater.Decision, greater.Reason
	out.AutoApprove = out.Decision == schema.Allow && (a.AutoApprove || b.AutoApprove)
	out.UpdatedInput = later(a.UpdatedInput, b.UpdatedInput)
	out.UpdatedOutput = later(a.UpdatedOutput, b.UpdatedOutput)
	out.Value = later(a.Value, b.Value)
	out.Effects = slices.Concat(a.Effects, b.Effects)
	return out
}

func later(a, b jsontext.Value) jsontext.Value {
	if b != nil {
		return b
	}
	return a
}

// FoldAll folds parts in order; of none it is the unit.
func FoldAll(t schema.EventType, parts ...Part) Part {
	var out Part
	for _, p := range parts {
		out = Fold(t, out, p)
	}
	return out
}

// Feedback returns the fold of all hooks as the agent reads it. Where a deny is feedback, the
// verdict has one hook's deny as its reason, and those of the others in the injections.
func Feedback(t schema.EventType, p Part) Part {
	if ruleOf(t).chain {
		return p
	}
	for _, row := range p.ExecutedHooks {
		if row.Decision != schema.Deny || row.Reason == "" || p.Decision == schema.Deny && row.Reason == p.Reason {
			continue
		}
		said := func(in schema.Injection) bool { return in.Hook == row.Hook && in.Content == row.Reason }
		if !slices.ContainsFunc(p.Injections, said) {
			one := schema.Injection{Content: row.Reason, Strategy: schema.ToolResult, Hook: row.Hook}
			p.Injections = append(slices.Clip(p.Injections), one)
		}
	}
	return p
}

// rewritten returns the event as a hook with this result leaves it to the next.
func rewritten(e schema.Event, p Part) schema.Event {
	switch ruleOf(e.HookType).rewrite {
	case input:
		e.ToolInput = later(e.ToolInput, p.UpdatedInput)
	case output:
		e.ToolOutput = later(later(e.ToolOutput, p.UpdatedOutput), p.Value)
	case message:
		e.Message = later(e.Message, p.Value)
	case response:
		e.Response = later(e.Response, p.Value)
	}
	return e
}
