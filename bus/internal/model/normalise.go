package model

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// An Answer is one hook's answer before any check.
type Answer struct {
	// Kind is the outcome of the question; empty means ok.
	Kind schema.OutcomeKind
	// Result is the hook's answer. It counts if Kind is ok or error. Other failures have no answer.
	Result schema.Result
	// Error is the failure, if Kind is not ok.
	Error string
}

// GoString returns the answer for the log of a failed property, with long texts cut.
func (a Answer) GoString() string {
	const enough = 1000
	text, err := schema.Marshal(a.Result)
	if err != nil {
		text = fmt.Append(nil, err)
	}
	if len(text) > enough {
		text = append(text[:enough], "…"...)
	}
	return fmt.Sprintf("%s %q %s", a.Kind, a.Error, text)
}

// A Part is the fold of some hooks' results: of one hook, after [Normalise], or of all. The zero
// Part means that no hook had an opinion, and is the unit of the fold.
type Part struct {
	schema.Verdict
	// OwnWords reports whether Reason is the fabric's sentence and not a hook's, so that other
	// words would do as well.
	OwnWords bool
}

// Normalise returns what one hook's answer counts for at an event. Illegal parts have become
// errors, the failure policy has been applied, and a terminal decision has lost what it cannot
// carry.
func Normalise(h schema.Hook, t schema.EventType, a Answer) Part {
	n := normaliser{hook: h, rule: ruleOf(t), in: a.Result, kind: a.Kind}
	n.heard(a.Error)
	n.size()
	n.decision()
	n.value()
	n.updates()
	n.effects()
	n.injections()
	n.ownErrors()
	n.policy()
	n.strip()
	n.trail()
	return n.out
}

// normaliser is the work on one answer; its methods run once, in order.
type normaliser struct {
	hook schema.Hook
	rule rule
	in   schema.Result
	kind schema.OutcomeKind
	// cut: the reason is shortened, so that its end may read otherwise.
	cut bool
	out Part
}

// note adds a fault to the verdict's errors, under the hook's name.
func (n *normaliser) note(format string, args ...any) {
	n.out.HookErrors = append(n.out.HookErrors, fmt.Sprintf("hook %q: ", n.hook.Name)+fmt.Sprintf(format, args...))
}

// err adds a fault that makes the outcome an error. An outcome that already is a failure stays
// unchanged.
func (n *normaliser) err(format string, args ...any) {
	n.note(format, args...)
	if n.kind == schema.OK {
		n.kind = schema.Errored
	}
}

// misshapen handles a malformed rewrite. From a guard it is an error of the hook: an input that the
// guard meant to change must not pass unchanged.
func (n *normaliser) misshapen(format string, args ...any) {
	if n.hook.FailClosed {
		n.err(format, args...)
	} else {
		n.note(format, args...)
	}
}

// heard handles answers that did not arrive. Only an answer that arrived has parts, also a faulty
// one. A late answer is never applied: its hook missed the deadline.
func (n *normaliser) heard(sentence string) {
	switch n.kind {
	case "":
		n.kind = schema.OK
	case schema.Late:
		n.kind = schema.Deadline
	}
	if n.kind == schema.OK {
		return
	}
	n.note("%s: %s", n.kind, sentence)
	if n.kind != schema.Errored {
		n.in = schema.Result{}
	}
}

// cutReason stands for the remainder of a reason that was too long.
const cutReason = "the start of the reason"

// size makes a result over the limit an error of the hook. It keeps the decision, so that an
// oversized refusal still refuses, and as much of the reason as a verdict may have.
func (n *normaliser) size() {
	r := n.in
	total := len(r.Reason) + len(r.UpdatedInput) + len(r.UpdatedOutput) + len(r.Value)
	for _, e := range r.Effects {
		total += len(e)
	}
	for _, i := range r.Injections {
		total += len(i.Content)
	}
	for _, e := range r.HookErrors {
		total += len(e)
	}
	if total > schema.MaxResult {
		n.err("the result has %d bytes", total)
		n.in = schema.Result{Decision: r.Decision, Reason: r.Reason}
		if len(r.Reason) > schema.MaxReason {
			n.in.Reason, n.cut = cutReason, true
		}
	}
}

// decision normalises the decision. Continue is no opinion, and neither is allow at an event that
// does not permit it. Any other decision that the event does not permit is an error, never an
// allow.
func (n *normaliser) decision() {
	d := n.in.Decision
	if d == "reject" && n.rule.permits(schema.Fail) {
		d = schema.Fail
	}
	switch {
	case d == schema.None, d == schema.Continue:
	case d == schema.Allow && !n.rule.permits(d):
	case !n.rule.permits(d):
		n.err("decision %q", d)
	case d == schema.Stop && !n.stopValue():
		n.err("stop without its value")
	default:
		n.out.Decision = d
	}
	if n.out.Decision != schema.None {
		n.out.Reason, n.out.OwnWords = n.in.Reason, n.cut
	}
}

// stopValue reports whether the answer has a value that a stop can carry at the event.
func (n *normaliser) stopValue() bool {
	return !absent(n.in.Value) && (!n.rule.messageStop || isMessage(n.in.Value))
}

// value normalises the value. It belongs to a stop, or replaces the subject of the event. If
// another member has the rewrite too, that member counts. A readonly hook may stop, but not
// replace.
func (n *normaliser) value() {
	v := n.in.Value
	faultyStop := n.in.Decision == schema.Stop && n.rule.permits(schema.Stop) && n.out.Decision != schema.Stop
	twice := n.rule.rewrite == input && !absent(n.in.UpdatedInput) || n.rule.rewrite == output && !absent(n.in.UpdatedOutput)
	switch {
	case absent(v):
	case n.out.Decision == schema.Stop:
		n.out.Value = v
	case faultyStop: // the missing value is already in the errors
	case n.rule.rewrite == nothing:
		n.note("nothing takes a value here")
	case twice:
		n.note("the rewrite stands there already")
	default:
		n.replace(v, "value")
	}
}

// replace applies a rewrite. A rewrite from a readonly hook is an error. A tool's input must be an
// object, and a message an object or a text.
func (n *normaliser) replace(v jsontext.Value, named string) {
	switch of := n.rule.rewrite; {
	case n.hook.Readonly:
		n.err("a readonly hook has %s", named)
	case of == input && v.Kind() != '{', of == message && !isMessage(v):
		n.misshapen("%s is of a wrong type", named)
	case of == input:
		n.out.UpdatedInput = v
	case of == output:
		n.out.UpdatedOutput = v
	default:
		n.out.Value = v
	}
}

// updates drops rewrites that the event does not permit.
func (n *normaliser) updates() {
	for _, u := range []struct {
		of    part
		named string
		v     jsontext.Value
	}{{input, "updated_input", n.in.UpdatedInput}, {output, "updated_output", n.in.UpdatedOutput}} {
		switch {
		case absent(u.v):
		case n.rule.rewrite != u.of:
			n.note("%s here", u.named)
		default:
			n.replace(u.v, u.named)
		}
	}
}

// effects keeps the legal effects, up to the limit.
func (n *normaliser) effects() {
	for i, e := range n.in.Effects {
		switch {
		case i >= schema.MaxEffects:
			n.misshapen("too many effects")
			return
		case !isEffect(e):
			n.misshapen("an effect of no known form")
		default:
			n.out.Effects = append(n.out.Effects, e)
		}
	}
}

// injections normalises the injections. Each keeps its own strategy. An unknown strategy goes into
// the errors, and the content is still delivered with the tool's result. An injection without
// content is dropped. Only queued items have a source and a sequence.
func (n *normaliser) injections() {
	for _, i := range n.in.Injections {
		if i.Content == "" {
			continue
		}
		s := i.Strategy
		if s != schema.ToolResult && s != schema.UserMessage {
			if s != "" {
				n.note("strategy %q", s)
			}
			s = schema.ToolResult
		}
		n.out.Injections = append(n.out.Injections, schema.Injection{Content: i.Content, Strategy: s, Hook: n.hook.Name})
	}
}

// ownErrors passes on the errors that the hook itself reports. Its answer still counts.
func (n *normaliser) ownErrors() {
	for _, e := range n.in.HookErrors {
		n.note("%s", e)
	}
}

// policy applies the failure policy. A failed hook allows nothing, and denies if it is fail-closed.
// A hook that cannot be loaded always denies. A legal deny, fail, stop or retry in a faulty answer
// stands, and so does an ask that no policy overrules. A fault therefore never makes a call pass
// more easily.
func (n *normaliser) policy() {
	if n.kind == schema.OK || decisive(n.out.Decision) {
		return
	}
	if n.out.Decision != schema.Ask {
		n.out.Decision, n.out.Reason, n.out.OwnWords = schema.None, "", false
	}
	if n.rule.blocking != schema.None && (n.hook.FailClosed || n.kind == schema.LoadError) {
		n.out.Decision, n.out.Reason, n.out.OwnWords = n.rule.blocking, n.out.HookErrors[0], true
	}
}

// strip removes rewrites from a decision that ends the chain, and the value unless it is a stop.
func (n *normaliser) strip() {
	if n.rule.terminal(n.out.Decision) {
		n.out.UpdatedInput, n.out.UpdatedOutput = nil, nil
		if n.out.Decision != schema.Stop {
			n.out.Value = nil
		}
	}
	n.out.AutoApprove = n.hook.AutoApprove && n.out.Decision == schema.Allow
}

// trail adds the hook's row to the trail.
func (n *normaliser) trail() {
	n.out.ExecutedHooks = []schema.ExecutedHook{{
		Hook: n.hook.Name, Decision: n.out.Decision, Reason: n.out.Reason, Outcome: n.kind, Mode: n.hook.Mode,
	}}
}
