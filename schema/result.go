package schema

import (
	"fmt"

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
	// Value is a stop's value, or the new message or response.
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
	n := len(r.Reason) + len(r.UpdatedInput) + len(r.UpdatedOutput) + len(r.Value)
	for _, e := range r.Effects {
		n += len(e)
	}
	for _, i := range r.Injections {
		n += len(i.Content)
	}
	for _, e := range r.HookErrors {
		n += len(e)
	}
	return n
}

// answer is everything that an answer may hold, in our own form, in MassGen's
// and in Claude Code's, each member unread: one faulty part must not take the
// others with it.
type answer struct {
	Decision      jsontext.Value `json:"decision"`
	Reason        jsontext.Value `json:"reason"`
	UpdatedInput  jsontext.Value `json:"updated_input"`
	UpdatedOutput jsontext.Value `json:"updated_output"`
	Value         jsontext.Value `json:"value"`
	Effects       jsontext.Value `json:"effects"`
	Inject        jsontext.Value `json:"inject"`
	Injections    jsontext.Value `json:"injections"`
	HookErrors    jsontext.Value `json:"hook_errors"`

	Allowed      jsontext.Value `json:"allowed"`
	ModifiedArgs jsontext.Value `json:"modified_args"`
	Metadata     jsontext.Value `json:"metadata"`

	HookSpecificOutput jsontext.Value `json:"hookSpecificOutput"`
	Continue           jsontext.Value `json:"continue"`
	StopReason         jsontext.Value `json:"stopReason"`
}

// claudeOutput is the part of Claude Code's form that depends on the event.
type claudeOutput struct {
	HookEventName            jsontext.Value `json:"hookEventName"`
	PermissionDecision       jsontext.Value `json:"permissionDecision"`
	PermissionDecisionReason jsontext.Value `json:"permissionDecisionReason"`
	UpdatedInput             jsontext.Value `json:"updatedInput"`
	AdditionalContext        jsontext.Value `json:"additionalContext"`
	UpdatedToolOutput        jsontext.Value `json:"updatedToolOutput"`
	UpdatedMCPToolOutput     jsontext.Value `json:"updatedMCPToolOutput"`
}

// reader turns an answer into a Result and notes every part it had to drop.
type reader struct {
	event EventType
	res   Result
}

// DecodeResult reads a hook's answer to an event of type t. It fails only if
// data is no JSON object at all; a faulty part is dropped and noted in
// HookErrors, and the rest is kept. A decision that can not be read becomes
// one that no event knows, so that it is an error and never an allow.
func DecodeResult(t EventType, data []byte) (Result, error) {
	if k := jsontext.Value(data).Kind(); k != '{' {
		return Result{}, fmt.Errorf("the answer is %s; a hook answers with one JSON object", kindName(k))
	}
	var a answer
	if err := Unmarshal(data, &a); err != nil {
		return Result{}, fmt.Errorf("the answer is not valid JSON: %w", err)
	}
	r := &reader{event: t}
	r.canonical(&a)
	r.massgen(&a)
	var c claudeOutput
	if r.object("hookSpecificOutput", a.HookSpecificOutput, &c) {
		r.claude(&c)
	}
	r.decide(&a, &c)
	return r.res, nil
}

func (r *reader) canonical(a *answer) {
	r.res.Reason = r.text("reason", a.Reason)
	r.res.UpdatedInput = present(a.UpdatedInput)
	r.res.UpdatedOutput = present(a.UpdatedOutput)
	r.res.Value = present(a.Value)
	r.list("effects", a.Effects, func(v jsontext.Value) { r.res.Effects = append(r.res.Effects, v) })
	if !isNull(a.Inject) {
		r.inject("inject", a.Inject)
	}
	r.list("injections", a.Injections, func(v jsontext.Value) { r.inject("injections", v) })
	r.list("hook_errors", a.HookErrors, func(v jsontext.Value) {
		if s := r.text("hook_errors", v); s != "" {
			r.res.HookErrors = append(r.res.HookErrors, s)
		}
	})
}

func (r *reader) massgen(a *answer) {
	if s := r.text("modified_args", a.ModifiedArgs); s != "" {
		if v := jsontext.Value(s); v.IsValid() && validObject(v) {
			r.res.UpdatedInput = v
		} else {
			r.fault("modified_args is not a JSON object in a string")
		}
	}
	var meta struct {
		Reason jsontext.Value `json:"reason"`
	}
	if r.res.Reason == "" && r.object("metadata", a.Metadata, &meta) {
		r.res.Reason = r.text("metadata.reason", meta.Reason)
	}
}

func (r *reader) claude(c *claudeOutput) {
	if name := r.text("hookEventName", c.HookEventName); name != "" && !r.event.calledByClaude(name) {
		r.fault(fmt.Sprintf("hookEventName is %q at the event %s", name, r.event))
	}
	if r.res.Reason == "" {
		r.res.Reason = r.text("permissionDecisionReason", c.PermissionDecisionReason)
	}
	if v := present(c.UpdatedInput); v != nil {
		r.res.UpdatedInput = v
	}
	for _, v := range []jsontext.Value{c.UpdatedToolOutput, c.UpdatedMCPToolOutput} {
		if v := present(v); v != nil {
			r.res.UpdatedOutput = v
		}
	}
	if s := r.text("additionalContext", c.AdditionalContext); s != "" {
		r.res.Injections = append(r.res.Injections, Injection{Content: s, Strategy: ToolResult})
	}
}

// decide finds the decision among the four places where an answer may hold
// one. Where they disagree, the stricter counts.
func (r *reader) decide(a *answer, c *claudeOutput) {
	own := r.decision(a.Decision)
	claude := r.decision(c.PermissionDecision)
	switch {
	case own == None:
		own = claude
	case claude == Deny:
		own = Deny
	}
	if len(a.Allowed) > 0 {
		switch a.Allowed.Kind() {
		case 't':
			if own == None {
				own = Allow
			}
		case 'f', 'n':
			own = Deny
		default:
			own = Decision("allowed: " + string(a.Allowed))
		}
	}
	if r.flagFalse("continue", a.Continue) {
		own = r.halt(own, a)
	}
	if own == Allow && !r.event.Permits(Allow) {
		own = None
	}
	r.res.Decision = own
}

// halt is Claude Code's `"continue": false`: end the run. At the end of a run
// that is what happens anyway.
func (r *reader) halt(own Decision, a *answer) Decision {
	if s := r.text("stopReason", a.StopReason); s != "" {
		r.res.Reason = s
	}
	switch r.event {
	case BeforeFinalResponse:
		return None
	case UserPromptSubmit:
		return Deny
	}
	return Fail
}

// decision reads one decision, translating the words of other systems. What
// it does not know it keeps as it is, for the fold to refuse.
func (r *reader) decision(v jsontext.Value) Decision {
	if isNull(v) {
		return None
	}
	if v.Kind() != '"' {
		return Decision(v)
	}
	var s string
	if err := Unmarshal(v, &s); err != nil {
		return Decision(v)
	}
	switch s {
	case "":
		return `""`
	case "approve":
		return Allow
	case "block":
		return Blocked(r.event, "").Decision
	}
	return Decision(s)
}

func (r *reader) inject(field string, v jsontext.Value) {
	var in struct {
		Content  jsontext.Value `json:"content"`
		Strategy jsontext.Value `json:"strategy"`
	}
	if !r.object(field, v, &in) {
		return
	}
	if content := r.text(field+".content", in.Content); content != "" {
		s := r.text(field+".strategy", in.Strategy)
		r.res.Injections = append(r.res.Injections, Injection{Content: content, Strategy: Strategy(s)})
	}
}

func (r *reader) fault(s string) { r.res.HookErrors = append(r.res.HookErrors, s) }

// text reads a string; absent and null are empty.
func (r *reader) text(field string, v jsontext.Value) string {
	if isNull(v) {
		return ""
	}
	var s string
	if err := Unmarshal(v, &s); err != nil {
		r.fault(fmt.Sprintf("%s is %s; it must be a string", field, kindName(v.Kind())))
	}
	return s
}

// object reads an object into v and reports whether there was one.
func (r *reader) object(field string, raw jsontext.Value, v any) bool {
	if isNull(raw) {
		return false
	}
	if err := Unmarshal(raw, v); err != nil || !validObject(raw) {
		r.fault(fmt.Sprintf("%s is %s; it must be an object", field, kindName(raw.Kind())))
		return false
	}
	return true
}

// list calls each for every element of a list; absent and null are empty.
func (r *reader) list(field string, raw jsontext.Value, each func(jsontext.Value)) {
	if isNull(raw) {
		return
	}
	var vs []jsontext.Value
	if err := Unmarshal(raw, &vs); err != nil {
		r.fault(fmt.Sprintf("%s is %s; it must be a list", field, kindName(raw.Kind())))
	}
	for _, v := range vs {
		each(v)
	}
}

// flagFalse reports whether a boolean is there and false.
func (r *reader) flagFalse(field string, v jsontext.Value) bool {
	switch {
	case isNull(v), v.Kind() == 't':
		return false
	case v.Kind() == 'f':
		return true
	}
	r.fault(fmt.Sprintf("%s is %s; it must be a boolean", field, kindName(v.Kind())))
	return false
}

// present is v, or nil where it is absent or null.
func present(v jsontext.Value) jsontext.Value {
	if isNull(v) {
		return nil
	}
	return v
}

// calledByClaude reports whether Claude Code calls t by name, in the
// hookEventName that its hooks repeat.
func (t EventType) calledByClaude(name string) bool {
	switch t {
	case ToolError:
		return name == "PostToolUseFailure" || name == "PostToolUse" || name == string(t)
	case BeforeFinalResponse:
		return name == "Stop" || name == "SubagentStop" || name == string(t)
	}
	return name == string(t)
}
