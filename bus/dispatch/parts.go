package dispatch

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

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
