package schema

import (
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Result is the answer of one hook, in canonical form. The zero Result is no opinion. The
// fold, not the reader, checks a Result against its event. All answers therefore pass the same
// check.
type Result struct {
	// Decision is the hook's decision; None: no opinion.
	Decision Decision `json:"decision,omitzero"`
	// Reason is the text for the agent, or for the operator who reads the record.
	Reason string `json:"reason,omitzero"`
	// UpdatedInput replaces the whole tool input; nil: no change.
	UpdatedInput jsontext.Value `json:"updated_input,omitzero"`
	// UpdatedOutput replaces the tool's output; nil: no change.
	UpdatedOutput jsontext.Value `json:"updated_output,omitzero"`
	// Value is a stop's value, or replaces the subject of the event: the tool's input or
	// output, the message or the response.
	Value jsontext.Value `json:"value,omitzero"`
	// Effects are changes that the agent's side applies in order. [ParseEffect] reads one.
	Effects []jsontext.Value `json:"effects,omitzero"`
	// Injections are texts for the agent.
	Injections []Injection `json:"injections,omitzero"`
	// HookErrors lists errors that the hook or the reader of its answer found.
	HookErrors []string `json:"hook_errors,omitzero"`
}

// Unreadable is the decision of a result that has unknown members and no known one but a reason.
// No event permits it, so it is an error of the hook.
const Unreadable Decision = "(no known member)"

// UnmarshalJSONFrom reads a result as a worker sends it.
func (r *Result) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type members Result // without this method
	var in struct {
		members
		Others jsontext.Value `json:",embed"`
	}
	if err := json.UnmarshalDecode(dec, &in); err != nil {
		return err
	}
	*r = Result(in.members)
	rest := *r
	rest.Reason = ""
	rest.UpdatedInput, rest.UpdatedOutput, rest.Value = present(rest.UpdatedInput), present(rest.UpdatedOutput), present(rest.Value)
	if len(in.Others) > 0 && reflect.ValueOf(rest).IsZero() {
		r.Decision = Unreadable
	}
	return nil
}

// Allowed returns the answer of a hook that allows the call.
func Allowed() Result { return Result{Decision: Allow} }

// Denied returns the answer of a hook that refuses the call. The agent's model reads the
// reason.
func Denied(reason string) Result { return Result{Decision: Deny, Reason: reason} }

// Asked returns the answer of a hook that wants a person to decide.
func Asked(reason string) Result { return Result{Decision: Ask, Reason: reason} }

// Injected returns the answer of a hook that adds a text for the agent.
func Injected(content string, s Strategy) Result {
	return Result{Injections: []Injection{{Content: content, Strategy: s}}}
}

// Rewritten returns the answer of a hook that replaces the tool's input.
func Rewritten(input jsontext.Value) Result { return Result{UpdatedInput: input} }

// Blocked returns the answer of a hook that says "block", as exit code 2 does. It is a deny, or
// at BeforeFinalResponse a retry that tells the model the reason.
func Blocked(t EventType, reason string) Result {
	if t == BeforeFinalResponse {
		return Result{Decision: Retry, Reason: reason}
	}
	return Result{Decision: Deny, Reason: reason}
}

// Size returns the approximate size of r on the wire, in bytes.
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

// Trimmed returns the part of an oversized answer that the fabric passes on: the decision, so
// that a refusal stays one, and a shortened reason.
func (r *Result) Trimmed() *Result {
	reason := r.Reason
	if len(reason) > MaxReason {
		reason = strings.ToValidUTF8(reason[:MaxReason], "") + "…"
	}
	return &Result{Decision: r.Decision, Reason: reason}
}

// Encodable reports whether every peer can read r's values as JSON. A value that a Go program
// built may be invalid.
func (r *Result) Encodable() bool {
	for _, v := range append([]jsontext.Value{r.UpdatedInput, r.UpdatedOutput, r.Value}, r.Effects...) {
		if v != nil && (!v.IsValid(jsontext.AllowInvalidUTF8(true)) || depth(v) > MaxDepth) {
			return false
		}
	}
	return true
}
