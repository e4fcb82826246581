package schema

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Result is what one hook answered, in the canonical form. The zero Result
// is "no opinion". Nothing in it has been checked against the event yet: that
// is the fold's work, so that every way into the fabric is judged alike.
type Result struct {
	// Decision is what the hook decides; None: it has no opinion.
	Decision Decision `json:"decision,omitzero"`
	// Reason is said to the agent, or to the person who looks.
	Reason string `json:"reason,omitzero"`
	// UpdatedInput replaces the whole tool input; nil: leave it.
	UpdatedInput jsontext.Value `json:"updated_input,omitzero"`
	// UpdatedOutput replaces the tool's output; nil: leave it.
	UpdatedOutput jsontext.Value `json:"updated_output,omitzero"`
	// Value is a stop's value, or replaces what the event is about: the tool's input or
	// output, the message or the response.
	Value jsontext.Value `json:"value,omitzero"`
	// Effects are objects that the agent's side applies in order.
	Effects []jsontext.Value `json:"effects,omitzero"`
	// Injections are content for the agent.
	Injections []Injection `json:"injections,omitzero"`
	// HookErrors are what the hook itself, or its reader, found wrong.
	HookErrors []string `json:"hook_errors,omitzero"`
}

// Allowed is the answer of a hook that lets the call pass.
func Allowed() Result { return Result{Decision: Allow} }

// Denied is the answer of a hook that refuses, with the reason to tell.
func Denied(reason string) Result { return Result{Decision: Deny, Reason: reason} }

// Asked is the answer of a hook that wants a person to decide.
func Asked(reason string) Result { return Result{Decision: Ask, Reason: reason} }

// Injected is the answer of a hook that has something to tell the agent.
func Injected(content string, s Strategy) Result {
	return Result{Injections: []Injection{{Content: content, Strategy: s}}}
}

// Rewritten is the answer of a hook that replaces the tool's input.
func Rewritten(input jsontext.Value) Result { return Result{UpdatedInput: input} }

// Blocked is the answer of a hook that says "block", as exit code 2 does: a
// deny, and on BeforeFinalResponse a retry that tells the agent why.
func Blocked(t EventType, reason string) Result {
	if t == BeforeFinalResponse {
		return Result{Decision: Retry, Reason: reason}
	}
	return Result{Decision: Deny, Reason: reason}
}

// Size is roughly how many bytes r takes on the wire.
func (r *Result) Size() int {
	n := len(r.Decision) + len(r.Reason) + len(r.UpdatedInput) + len(r.UpdatedOutput) + len(r.Value)
	for _, e := range r.Effects {
		n += len(e)
	}
	for _, i := range r.Injections {
		n += len(i.Content) + len(i.Strategy)
	}
	for _, e := range r.HookErrors {
		n += len(e)
	}
	return n
}

// Trimmed is what is kept of an answer that is too large: its decision, so that
// an oversized refusal is still one, and as much of the reason as is passed on.
func (r *Result) Trimmed() *Result {
	reason := r.Reason
	if len(reason) > MaxReason {
		reason = strings.ToValidUTF8(reason[:MaxReason], "") + "…"
	}
	return &Result{Decision: r.Decision, Reason: reason}
}

// Encodable reports whether r's values are JSON that every peer can read. One
// that a program made by hand may not be.
func (r *Result) Encodable() bool {
	for _, v := range append([]jsontext.Value{r.UpdatedInput, r.UpdatedOutput, r.Value}, r.Effects...) {
		if v != nil && (!v.IsValid(jsontext.AllowInvalidUTF8(true)) || depth(v) > MaxDepth) {
			return false
		}
	}
	return true
}
