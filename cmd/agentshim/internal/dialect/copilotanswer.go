package dialect

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A copilotWriter writes one answer. specific is its part for the event in the PascalCase form.
type copilotWriter struct {
	call          *Call
	v             *schema.Verdict
	out, specific parts
}

// pascal reports whether the answer has Claude Code's form. Only the moment is always known.
func (w *copilotWriter) pascal() bool { return formOf(w.call.Moment) == pascal }

// decide writes a decision about a tool call to the place that the form has for it.
func (w *copilotWriter) decide(decision, reason string) {
	into := w.out
	if w.pascal() {
		into = w.specific
	}
	into["permissionDecision"] = decision
	if reason != "" {
		into["permissionDecisionReason"] = reason
	}
}

// context adds a text for the model. Only PreToolUse reads it at Claude Code's place.
func (w *copilotWriter) context(told string) {
	switch {
	case told == "":
	case w.pascal() && w.call.Moment.Event == schema.PreToolUse:
		w.specific["additionalContext"] = told
	default:
		w.out["additionalContext"] = told
	}
}

// before writes the answer about a tool call.
func (w *copilotWriter) before() {
	v := w.v
	switch {
	case refuses(v) || v.Terminate != nil:
		w.decide("deny", why(v))
	case v.Decision == schema.Ask:
		w.decide("ask", cmp.Or(v.Reason, askReason))
	case v.Decision == schema.Allow && v.AutoApprove:
		w.decide("allow", v.Reason)
	}
	if v.UpdatedInput != nil && !refuses(v) {
		w.rewrite(w.arguments())
	}
	w.context(texts(v.Injections))
}

// rewrite writes the arguments in both forms, because releases differ in which they read.
func (w *copilotWriter) rewrite(args jsontext.Value) {
	w.out["modifiedArgs"] = args
	if w.pascal() {
		w.specific["updatedInput"] = args
	}
}

// arguments returns the arguments of the rewritten call, as one text if the original was one.
func (w *copilotWriter) arguments() jsontext.Value {
	o := members(w.v.UpdatedInput)
	if !strings.HasSuffix(w.call.Form, asText) || len(o) != 1 || o["input"].Kind() != '"' {
		return w.v.UpdatedInput
	}
	return o["input"]
}

// permission writes the answer in place of a person. Without an answer the person decides.
func (w *copilotWriter) permission() {
	v := w.v
	changed := v.UpdatedInput != nil && !covers(v.UpdatedInput, w.call.Event.ToolInput)
	switch {
	case refuses(v) || v.Terminate != nil:
		w.out["behavior"], w.out["message"] = "deny", why(v)
		if ends(v) {
			w.out["interrupt"] = true
		}
	case changed:
		w.out["behavior"], w.out["message"] = "deny", fixedInput
	case v.Decision == schema.Allow && v.AutoApprove:
		w.out["behavior"] = "allow"
	}
}

// after writes the answer about a call that has run.
func (w *copilotWriter) after() {
	v, output := w.v, replacement(w.v)
	switch {
	case refuses(v):
		// The model sees only the reason of a block.
		w.out["decision"], w.out["reason"] = "block", together(why(v), output, texts(v.Injections))
		return
	case output != "":
		w.out["modifiedResult"] = parts{"resultType": "success", "textResultForLlm": output}
	}
	w.context(texts(v.Injections))
}

// covers reports whether an object has all members of another one: a permission request shows only a part.
func covers(whole, part jsontext.Value) bool {
	all, some := members(whole), members(part)
	for name, v := range some {
		if !sameJSON(v, all[name]) {
			return false
		}
	}
	return len(some) > 0
}
