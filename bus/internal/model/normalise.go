package model

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// An Answer is what asking one hook gives, before anybody has judged it.
type Answer struct {
	// Kind says what came of asking; empty is ok.
	Kind schema.OutcomeKind
	// Result is what the hook said. It counts if Kind is ok or error: of all
	// other failures nothing was heard.
	Result schema.Result
	// Error says what went wrong, if Kind is not ok.
	Error string
}

// GoString is the answer for the log of a failed property, its long texts cut.
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

// A Part is the fold of some hooks' results: of one, after [Normalise], or of
// all. The zero Part is "nobody had an opinion", the unit of the fold.
type Part struct {
	schema.Verdict
	// OwnWords says that Reason is the fabric's sentence and not a hook's, so
	// that other words would be as good.
	OwnWords bool
}

// Normalise says what the answer of one hook counts for at an event: illegal
// parts have become errors, the failure policy has been applied, and a
// terminal decision has been stripped of what it cannot carry.
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

// note: everything that goes wrong is said, under the hook's name.
func (n *normaliser) note(format string, args ...any) {
	n.out.HookErrors = append(n.out.HookErrors, fmt.Sprintf("hook %q: ", n.hook.Name)+fmt.Sprintf(format, args...))
}

// err: some faults mean that the hook has failed. An outcome that is a failure
// already stays the one it is.
func (n *normaliser) err(format string, args ...any) {
	n.note(format, args...)
	if n.kind == schema.OK {
		n.kind = schema.Errored
	}
}

// misshapen: what a guard wanted changed does not pass unchanged, because the
// guard said it wrong.
func (n *normaliser) misshapen(format string, args ...any) {
	if n.hook.FailClosed {
		n.err(format, args...)
	} else {
		n.note(format, args...)
	}
}

// heard: only an answer that came, if a faulty one, has parts. What came too
// late is never applied: that hook ran into its deadline.
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

// cutReason stands for what is left of a reason that was too long.
const cutReason = "the start of the reason"

// size: a result over the bound is an error of the hook. Only its decision is
// kept, so that an oversized refusal is still one, and of the reason as much as
// is passed on.
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

// decision: continue is no opinion, and so is an allow where nobody needs one.
// Whatever else the event does not list is an error, never an allow.
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

// stopValue: a stop must carry a value of the event's type.
func (n *normaliser) stopValue() bool {
	return !absent(n.in.Value) && (!n.rule.messageStop || isMessage(n.in.Value))
}

// value: it belongs to a stop, or replaces what the event is about, unless the
// answer says that in another member too, which counts then. A readonly hook may
// stop, but not replace.
func (n *normaliser) value() {
	v := n.in.Value
	faultyStop := n.in.Decision == schema.Stop && n.rule.permits(schema.Stop) && n.out.Decision != schema.Stop
	twice := n.rule.rewrite == input && !absent(n.in.UpdatedInput) || n.rule.rewrite == output && !absent(n.in.UpdatedOutput)
	switch {
	case absent(v):
	case n.out.Decision == schema.Stop:
		n.out.Value = v
	case faultyStop: // the missing value has been said already
	case n.rule.rewrite == nothing:
		n.note("nothing takes a value here")
	case twice:
		n.note("the rewrite stands there already")
	default:
		n.replace(v, "value")
	}
}

// replace: a rewrite from a readonly hook is an error, a tool's input is an
// object, and a message is one or a text.
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

// updates: a rewrite of what cannot be rewritten here is dropped.
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

// effects: those of the contract, up to its bound.
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

// injections: each keeps its own strategy; an unknown one is said and the
// content delivered with the tool's result all the same. Nothing to read is
// nothing to deliver. Only what was queued has a source and a sequence.
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

// ownErrors: what the hook found wrong itself is passed on; it has answered
// all the same.
func (n *normaliser) ownErrors() {
	for _, e := range n.in.HookErrors {
		n.note("%s", e)
	}
}

// policy: a hook that failed allows nothing, and denies if it is fail-closed.
// One that cannot be loaded denies always. A legal deny, fail, stop or retry
// that came with the fault stands, and so does an ask that no policy overrules:
// a fault never makes a call pass more easily.
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

// strip: what ends the chain rewrites nothing, and only a stop has a value.
func (n *normaliser) strip() {
	if n.rule.terminal(n.out.Decision) {
		n.out.UpdatedInput, n.out.UpdatedOutput = nil, nil
		if n.out.Decision != schema.Stop {
			n.out.Value = nil
		}
	}
	n.out.AutoApprove = n.hook.AutoApprove && n.out.Decision == schema.Allow
}

// trail: each hook that was asked leaves one line.
func (n *normaliser) trail() {
	n.out.ExecutedHooks = []schema.ExecutedHook{{
		Hook: n.hook.Name, Decision: n.out.Decision, Reason: n.out.Reason, Outcome: n.kind, Mode: n.hook.Mode,
	}}
}
