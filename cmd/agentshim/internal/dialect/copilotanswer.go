package dialect

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A copilotWriter writes one answer, of which specific is the part that depends
// on the event in the PascalCase form.
type copilotWriter struct {
	call          *Call
	v             *schema.Verdict
	out, specific parts
}

// pascal reports whether the answer has Claude Code's form. The moment tells: of
// a call that could not be read nothing else is known.
func (w *copilotWriter) pascal() bool { return formOf(w.call.Moment) == pascal }

// decide says a decision about a tool call where the form has it.
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

// context tells the model something. Of the PascalCase events only PreToolUse
// reads it where Claude Code does.
func (w *copilotWriter) context(told string) {
	switch {
	case told == "":
	case w.pascal() && w.call.Moment.Event == schema.PreToolUse:
		w.specific["additionalContext"] = told
	default:
		w.out["additionalContext"] = told
	}
}

// before is the answer about a tool call.
func (w *copilotWriter) before() {
	v := w.v
	switch {
	case refuses(v) || v.Terminate != nil:
		w.decide("deny", why(v))
	case v.Decision == schema.Ask:
		w.decide("ask", first(v.Reason, askReason))
	case v.Decision == schema.Allow && v.AutoApprove:
		w.decide("allow", v.Reason)
	}
	if v.UpdatedInput != nil && !refuses(v) {
		w.rewrite(w.arguments())
	}
	w.context(texts(v.Injections))
}

// rewrite says the arguments in the words of both forms where a release may
// read either; members that it does not know it leaves alone.
func (w *copilotWriter) rewrite(args jsontext.Value) {
	w.out["modifiedArgs"] = args
	if w.pascal() {
		w.specific["updatedInput"] = args
	}
}

// arguments are those of the rewritten call, as one text where it was one.
func (w *copilotWriter) arguments() jsontext.Value {
	var o map[string]jsontext.Value
	if !strings.HasSuffix(w.call.Form, asText) || schema.Unmarshal(w.v.UpdatedInput, &o) != nil || len(o) != 1 || o["input"].Kind() != '"' {
		return w.v.UpdatedInput
	}
	return o["input"]
}

// permission is the answer in a person's place; without one the person decides.
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
		w.out["behavior"] = "deny"
		w.out["message"] = "a hook rewrites this call, but this runtime cannot rewrite a call that waits for approval; make the call in a form that the policy accepts unchanged"
	case v.Decision == schema.Allow && v.AutoApprove:
		w.out["behavior"] = "allow"
	}
}

// after is the answer about a call that was made.
func (w *copilotWriter) after() {
	v := w.v
	replacement := ""
	if v.UpdatedOutput != nil {
		replacement = first(Text(v.UpdatedOutput), "(no output)")
	}
	switch {
	case refuses(v):
		// Its reason is all that the model sees.
		w.out["decision"], w.out["reason"] = "block", together(why(v), replacement, texts(v.Injections))
		return
	case replacement != "":
		w.out["modifiedResult"] = parts{"resultType": "success", "textResultForLlm": replacement}
	}
	w.context(texts(v.Injections))
}

// covers reports whether an object has all members of another one, with the same
// values: who asks for permission shows a part of the call.
func covers(whole, part jsontext.Value) bool {
	var all, some map[string]jsontext.Value
	if schema.Unmarshal(whole, &all) != nil || schema.Unmarshal(part, &some) != nil || len(some) == 0 {
		return false
	}
	for name, v := range some {
		if !sameJSON(v, all[name]) {
			return false
		}
	}
	return true
}
