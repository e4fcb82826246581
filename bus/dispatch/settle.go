package dispatch

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// Settle turns the outcome of one hook into its part of the verdict. Illegal parts of the
// answer become errors, and the failure policy is applied. Workers use it to know where a
// chain ends, and the aggregator uses it again, because it does not trust workers.
func Settle(h *schema.Hook, o *schema.Outcome) schema.Verdict {
	var v schema.Verdict
	settle(h, o, make([]schema.ExecutedHook, 0, 1), &v)
	return v
}

// settle is Settle into the empty verdict out. The executed hook is appended to trail. It
// returns the final kind of the outcome.
func settle(h *schema.Hook, o *schema.Outcome, trail []schema.ExecutedHook, out *schema.Verdict) schema.OutcomeKind {
	s := settlement{hook: h, kind: o.Kind, out: out}
	switch s.kind {
	case "":
		s.kind = schema.OK
	case schema.Late:
		s.kind = schema.Deadline
	}
	if _, failure := failureText[s.kind]; !failure && s.kind != schema.OK {
		s.kind = schema.Errored // a kind of a newer worker
	}
	if o.Error != "" {
		s.note(o.Error)
	} else if s.kind != schema.OK {
		s.note(failureText[s.kind])
	}
	if s.kind == schema.OK || s.kind == schema.Errored {
		s.take(&o.Result)
	}
	if s.kind != schema.OK {
		s.applyPolicy()
	}
	s.strip()
	s.out.ExecutedHooks = append(trail, schema.ExecutedHook{
		Hook: h.Name, Decision: s.out.Decision, Reason: s.out.Reason, Outcome: s.kind,
		Duration: o.Took, Worker: o.Worker, Mode: h.Mode, Error: s.failure,
	})
	return s.kind
}

// Goes reports whether o is a result that lets the chain go on unchanged, as most results
// do. It is a fast check with the same answer as Settle.
func Goes(o *schema.Outcome) bool {
	if o.Kind != "" && o.Kind != schema.OK {
		return false
	}
	r := &o.Result
	switch r.Decision {
	case schema.None, schema.Continue, schema.Allow:
		return r.UpdatedInput == nil && r.UpdatedOutput == nil && r.Value == nil && len(r.Effects) == 0 &&
			len(r.Injections) == 0 && len(r.HookErrors) == 0 && len(r.Reason) <= schema.MaxReason
	}
	return false
}

// failureText describes failures that have no error text.
var failureText = map[schema.OutcomeKind]string{
	schema.Deadline:  "did not answer before its deadline",
	schema.Errored:   "failed",
	schema.NoWorker:  "no worker serves its pool",
	schema.Lost:      "its worker was lost before it answered",
	schema.Busy:      "every worker of its pool stayed busy until its deadline",
	schema.LoadError: "its handler cannot be loaded",
}

// settlement is the work of settling one outcome.
type settlement struct {
	hook *schema.Hook
	kind schema.OutcomeKind
	out  *schema.Verdict
	// failure is the first error.
	failure string
}

// note records an error without changing the outcome.
func (s *settlement) note(what string) {
	if len(what) > schema.MaxReason {
		what = strings.ToValidUTF8(what[:schema.MaxReason], "") + "…"
	}
	if s.failure == "" {
		s.failure = what
	}
	s.out.HookErrors = append(s.out.HookErrors, fmt.Sprintf("hook %q: %s", s.hook.Name, what))
}

// fault records an error that makes the outcome a failure: the failure policy decides.
func (s *settlement) fault(what string) {
	s.note(what)
	s.kind = schema.Errored
}

// take keeps the legal parts of an answer and turns the others into errors.
func (s *settlement) take(r *schema.Result) {
	if n := r.Size(); n > schema.MaxResult {
		s.fault(fmt.Sprintf("answered with %d bytes; an answer has at most %d", n, schema.MaxResult))
		r = r.Trimmed()
	}
	for _, e := range r.HookErrors {
		s.note(e)
	}
	s.decide(r)
	s.updates(r)
	s.value(r)
	s.effects(r.Effects)
	s.inject(r.Injections)
}

func (s *settlement) decide(r *schema.Result) {
	t, d := s.hook.Event, s.hook.Event.Plain(r.Decision)
	switch {
	case d == schema.None || d == schema.Continue || d == schema.Allow && !t.Permits(d):
	case !t.Permits(d):
		s.fault(fmt.Sprintf("decided %q; at %s write one of %s", clip(string(d)), t, legal(t)))
	case d == schema.Stop && !fits(r.Value, t.StopValue()):
		s.fault(fmt.Sprintf("decided stop without its value; at %s a stop needs %s", t, valueName(t.StopValue())))
	default:
		s.out.Decision, s.out.Reason = d, r.Reason
		s.out.AutoApprove = d == schema.Allow && s.hook.AutoApprove
	}
}

// applyPolicy decides for a hook that failed. A refusal or question that came with the
// failure stands, because a failure never weakens one. An allow is dropped.
func (s *settlement) applyPolicy() {
	t := s.hook.Event
	if s.out.Decision == schema.Allow {
		s.out.Decision, s.out.Reason, s.out.AutoApprove = schema.None, "", false
	}
	if !s.hook.FailClosed && s.kind != schema.LoadError {
		return
	}
	d := t.Blocking()
	if d == schema.None || t.Terminal(s.out.Decision) {
		return
	}
	why := "is fail-closed"
	if s.kind == schema.LoadError {
		why = "guards this call"
	}
	s.out.Decision, s.out.AutoApprove = d, false
	s.out.Reason = fmt.Sprintf("hook %q %s and gave no answer: %s", s.hook.Name, why, s.failure)
}

// strip removes from a result that ends its chain what only a result that goes on may
// have: rewrites, and the value unless it is a stop.
func (s *settlement) strip() {
	if !s.hook.Event.Terminal(s.out.Decision) {
		return
	}
	s.out.UpdatedInput, s.out.UpdatedOutput = nil, nil
	if s.out.Decision != schema.Stop {
		s.out.Value = nil
	}
}

func legal(t schema.EventType) string {
	var names []string
	for _, d := range t.Decisions() {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}

// clip shortens foreign text that an error repeats.
func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// updates takes updated_input and updated_output.
func (s *settlement) updates(r *schema.Result) {
	t := s.hook.Event.Rewrites()
	switch {
	case absent(r.UpdatedInput):
	case t == schema.RewriteInput:
		s.input("updated_input", r.UpdatedInput)
	default:
		s.note(fmt.Sprintf("updated_input dropped: %s has no tool input to rewrite", s.hook.Event))
	}
	switch {
	case absent(r.UpdatedOutput):
	case t == schema.RewriteOutput:
		s.output("updated_output", r.UpdatedOutput)
	default:
		s.note(fmt.Sprintf("updated_output dropped: %s has no tool output to rewrite", s.hook.Event))
	}
}

// value takes a stop's value, or the replacement of the event's subject: the tool's input
// or output, the message, the response.
func (s *settlement) value(r *schema.Result) {
	if absent(r.Value) {
		return
	}
	t := s.hook.Event
	switch rw := t.Rewrites(); {
	case s.out.Decision == schema.Stop:
		s.out.Value = r.Value
	case r.Decision == schema.Stop && t.Permits(schema.Stop):
		// The stop was a fault because of this value.
	case rw == schema.RewriteInput && !absent(r.UpdatedInput):
		s.note("value dropped: updated_input already replaces the tool's input")
	case rw == schema.RewriteOutput && !absent(r.UpdatedOutput):
		s.note("value dropped: updated_output already replaces the tool's output")
	case rw == schema.RewriteInput:
		s.input("value", r.Value)
	case rw == schema.RewriteOutput:
		s.output("value", r.Value)
	case rw == schema.NoRewrite && t.Permits(schema.Stop):
		s.note(fmt.Sprintf("value dropped: at %s only a stop has a value", t))
	case rw == schema.NoRewrite:
		s.note(fmt.Sprintf("value dropped: a hook at %s cannot set a value", t))
	case !s.mayRewrite("value"):
	case rw == schema.RewriteMessage && !fits(r.Value, schema.MessageValue):
		s.misshapen("value dropped: a message must be a string, or an object whose role is not system, user or tool")
	case !valid(r.Value):
		s.misshapen("value dropped: it is not valid JSON")
	default:
		s.out.Value = r.Value
	}
}

// input rewrites the tool's input. field is the member of the answer that has the new
// input.
func (s *settlement) input(field string, v jsontext.Value) {
	switch {
	case !s.mayRewrite(field):
	case v.Kind() != '{' || !valid(v):
		s.misshapen(field + " dropped: it must be the tool's whole input as a JSON object")
	default:
		s.out.UpdatedInput = v
	}
}

// output rewrites the tool's output. field is the member of the answer that has the new
// output.
func (s *settlement) output(field string, v jsontext.Value) {
	switch {
	case !s.mayRewrite(field):
	case !valid(v):
		s.misshapen(field + " dropped: it is not valid JSON")
	default:
		s.out.UpdatedOutput = v
	}
}

// misshapen notes a part of an answer that the event permits but whose form is wrong. For
// a fail-closed hook it is a fault: a guard that wanted a change must not count as one
// that allowed the call unchanged.
func (s *settlement) misshapen(what string) {
	if s.hook.FailClosed {
		s.fault(what)
	} else {
		s.note(what)
	}
}

// mayRewrite reports whether the hook may rewrite. A readonly hook ran side by side with
// others, so the input of its rewrite is unknown.
func (s *settlement) mayRewrite(field string) bool {
	if s.hook.Readonly {
		s.fault(field + " dropped: the hook is readonly; configure readonly: false for a hook that rewrites")
	}
	return !s.hook.Readonly
}

// effects takes the effects that agents can apply.
func (s *settlement) effects(all []jsontext.Value) {
	if n := len(all); n > schema.MaxEffects {
		s.misshapen(fmt.Sprintf("the answer has %d effects; only the first %d apply", n, schema.MaxEffects))
		all = all[:schema.MaxEffects]
	}
	for _, v := range all {
		if _, err := schema.ParseEffect(v); err != nil {
			s.misshapen("effect dropped: " + err.Error())
			continue
		}
		s.out.Effects = append(s.out.Effects, v)
	}
}

func (s *settlement) inject(all []schema.Injection) {
	for _, in := range all {
		if in.Content == "" {
			continue
		}
		if in.Strategy == "" {
			in.Strategy = schema.ToolResult
		}
		if !in.Strategy.Known() {
			s.note(fmt.Sprintf("the injection strategy %q is unknown, so tool_result applies; write tool_result or user_message", clip(string(in.Strategy))))
			in.Strategy = schema.ToolResult
		}
		s.out.Injections = append(s.out.Injections, schema.Injection{
			Content: in.Content, Strategy: in.Strategy, Hook: s.hook.Name,
		})
	}
}

// fits reports whether v is a value of the kind.
func fits(v jsontext.Value, k schema.ValueKind) bool {
	switch {
	case absent(v) || !valid(v):
		return false
	case k == schema.MessageValue:
		return schema.ModelsMessage(v)
	}
	return k == schema.ToolResultValue || k == schema.ResponseValue
}

// absent reports whether there is no value; null counts as none.
func absent(v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' }

func valueName(k schema.ValueKind) string {
	switch k {
	case schema.MessageValue:
		return "a message: a string, or an object whose role is not system, user or tool"
	case schema.ResponseValue:
		return "a response: any JSON value except null"
	}
	return "a tool result: any JSON value except null"
}

// valid reports whether v is one JSON value; invalid UTF-8 in strings is permitted.
func valid(v jsontext.Value) bool {
	return v.IsValid(jsontext.AllowInvalidUTF8(true))
}
