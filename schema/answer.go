package schema

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// answer has all members of an answer in our form, MassGen's and Claude Code's. They are
// not decoded yet, so that one faulty member does not affect the others.
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
	// SystemMessage and SuppressOutput are about what a runtime shows to its user of a
	// hook. The fabric shows nothing, so that they have no effect.
	SystemMessage  jsontext.Value `json:"systemMessage"`
	SuppressOutput jsontext.Value `json:"suppressOutput"`

	Others jsontext.Value `json:",embed"` // all members that are not listed above
}

// unread reports whether a has unknown members, and no known ones except those that only
// explain. A misspelt decision usually comes with its reason.
func (a answer) unread() bool {
	if len(a.Others) == 0 {
		return false
	}
	a.Others, a.Reason, a.Metadata, a.StopReason = nil, nil, nil, nil
	a.SystemMessage, a.SuppressOutput = nil, nil
	var c claudeOutput
	if isNull(a.HookSpecificOutput) || Unmarshal(a.HookSpecificOutput, &c) == nil && c.explains() {
		a.HookSpecificOutput = nil
	}
	return reflect.ValueOf(a).IsZero()
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
	// ModifiedOutput is what MassGen's adapter calls the same.
	ModifiedOutput jsontext.Value `json:"modifiedOutput"`

	Others jsontext.Value `json:",embed"` // all members that are not listed above
}

// DecodeResult reads a hook's answer to an event of type t. It fails if data is not one JSON
// object, or if the object has an unknown member and no known one but those that only explain,
// such as reason. It drops a faulty part, notes it in HookErrors, and keeps the rest. If it cannot read the decision, it returns
// a decision that no event permits. The fold then reports an error, never an allow.
func DecodeResult(t EventType, data []byte) (Result, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return Result{}, errors.New("the answer is empty; a hook answers with one JSON object, {} for no opinion")
	}
	if k := kindOf(data); k != '{' {
		return Result{}, fmt.Errorf("the answer is %s; a hook answers with one JSON object", KindName(k))
	}
	if depth(data) > MaxDepth {
		return Result{}, fmt.Errorf("the answer nests deeper than %d levels; flatten it", MaxDepth)
	}
	var a answer
	if err := Unmarshal(data, &a); err != nil {
		return Result{}, sentence("the answer", err)
	}
	if a.unread() {
		return Result{}, fmt.Errorf("the answer has members that the contract does not know, %s, and beside them none or only an explanation such as reason; "+
			"answer with decision or another member that section 6 of schema/wire.md lists, or with {} for no opinion", clip(string(a.Others)))
	}
	r := &reader{event: t}
	r.canonical(&a)
	r.massgen(&a)
	var c claudeOutput
	if r.object("hookSpecificOutput", a.HookSpecificOutput, &c) {
		r.claude(&c)
	} else if !isNull(a.HookSpecificOutput) {
		c.Others = a.HookSpecificOutput // its decision cannot be read
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
		if v := jsontext.Value(s); validObject(v) && v.IsValid(options) {
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
	for _, v := range []jsontext.Value{c.UpdatedToolOutput, c.UpdatedMCPToolOutput, c.ModifiedOutput} {
		if v := present(v); v != nil {
			r.res.UpdatedOutput = v
		}
	}
	if s := r.text("additionalContext", c.AdditionalContext); s != "" {
		r.res.Injections = append(r.res.Injections, Injection{Content: s, Strategy: ToolResult})
	}
	if c.unread() == None {
		for _, name := range c.unknown() {
			r.fault(fmt.Sprintf("hookSpecificOutput.%s dropped: it has no meaning here", clip(name)))
		}
	}
}

// decide finds the decision in the four places where an answer may have one. If they
// differ, the strictest counts.
func (r *reader) decide(a *answer, c *claudeOutput) {
	d := r.stricter(r.decision(a.Decision), r.decision(c.PermissionDecision))
	d = r.stricter(d, c.unread())
	if len(a.Allowed) > 0 {
		d = r.stricter(d, allowedWord(a.Allowed))
	}
	if r.flagFalse("continue", a.Continue) {
		d = r.halt(d, a)
	}
	if d == Allow && !r.event.Permits(Allow) {
		d = None
	}
	r.res.Decision = d
}

// unread returns Claude Code's part as a decision that no event permits if it has unknown
// members, and no known ones except the event's name and a reason.
func (c *claudeOutput) unread() Decision {
	known := *c
	known.Others = nil
	if len(c.Others) == 0 || !known.explains() {
		return None
	}
	return Decision(clip("hookSpecificOutput: " + string(c.Others)))
}

// explains reports whether c has only the event's name and a reason.
func (c claudeOutput) explains() bool {
	c.HookEventName, c.PermissionDecisionReason = nil, nil
	return reflect.ValueOf(c).IsZero()
}

// unknown returns the names of the unknown members, sorted.
func (c *claudeOutput) unknown() []string {
	var members map[string]jsontext.Value
	if len(c.Others) == 0 || Unmarshal(c.Others, &members) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(members))
}

// allowedWord returns MassGen's `allowed` as a decision.
func allowedWord(v jsontext.Value) Decision {
	switch v.Kind() {
	case 't':
		return Allow
	case 'f', 'n':
		return Deny
	}
	return Decision(clip("allowed: " + string(v)))
}

// stricter returns the stricter of two decisions of one answer, the first of equals. An
// unknown decision is stricter than an allow, so that it stays an error, and weaker than
// a deny, so that it does not undo a refusal.
func (r *reader) stricter(a, b Decision) Decision {
	if r.strictness(b) > r.strictness(a) {
		return b
	}
	return a
}

func (r *reader) strictness(d Decision) int {
	switch d {
	case None:
		return 0
	case Continue:
		return 1
	case Allow:
		return 2
	}
	if !r.event.Permits(d) {
		return 4
	}
	switch d {
	case Ask:
		return 3
	case Retry:
		return 5
	case Stop:
		return 6
	case Deny:
		return 7
	}
	return 8
}

// halt applies Claude Code's `"continue": false`, which ends the run. At the end of a run
// it only cancels a retry.
func (r *reader) halt(d Decision, a *answer) Decision {
	if s := r.text("stopReason", a.StopReason); s != "" {
		r.res.Reason = s
	}
	switch r.event {
	case BeforeFinalResponse:
		if d == Retry || d == Continue || d == Allow {
			return None
		}
		return d
	case UserPromptSubmit:
		return r.stricter(d, Deny)
	}
	return r.stricter(d, Fail)
}

// decision reads one decision in our words or other systems'. It returns an unknown one
// unchanged, for the fold to refuse.
func (r *reader) decision(v jsontext.Value) Decision {
	if isNull(v) {
		return None
	}
	var s string
	if v.Kind() != '"' || Unmarshal(v, &s) != nil || s == "" {
		return Decision(clip(string(v)))
	}
	switch s {
	case "approve":
		return Allow
	case "block":
		return Blocked(r.event, "").Decision
	}
	return r.event.Plain(Decision(clip(s)))
}
