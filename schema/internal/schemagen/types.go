package main

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/hookfabric/hookfabric/schema"
)

// duration matches the text form of a Go duration.
const duration = `^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

func enum[T ~string](words ...T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, w := range words {
		s.Enum = append(s.Enum, string(w))
	}
	return s
}

// custom has the types whose JSON differs from their Go kind.
func custom() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[jsontext.Value]():   {},
		reflect.TypeFor[[]byte]():           {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[schema.Duration]():  {Type: "string", Pattern: duration},
		reflect.TypeFor[time.Time]():        {Type: "string", Format: "date-time"},
		reflect.TypeFor[schema.EventType](): enum(schema.EventTypes()...),
		reflect.TypeFor[schema.Decision](): enum(schema.Continue, schema.Allow, schema.Ask, schema.Deny,
			schema.Retry, schema.Stop, schema.Fail),
		reflect.TypeFor[schema.OutcomeKind](): enum(schema.OutcomeKinds()...),
		reflect.TypeFor[schema.Strategy]():    enum(schema.ToolResult, schema.UserMessage),
		reflect.TypeFor[schema.Mode]():        enum(schema.Shadow),
	}
}

// inferred returns the schema of T. It is open, because unknown members are ignored, and
// has the comments of its fields as descriptions.
func inferred[T any](d docs) (*jsonschema.Schema, error) {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: custom()})
	if err != nil {
		return nil, err
	}
	t := reflect.TypeFor[T]()
	finish(s, t, d)
	s.Title, s.Description = t.Name(), d[t.Name()]
	return s, nil
}

// finish opens the objects of s, the schema of t, and describes them.
func finish(s *jsonschema.Schema, t reflect.Type, d docs) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && s.Items != nil {
		if t.Kind() == reflect.Slice {
			s.Types, s.Type = nil, "array"
			s = s.Items
		} else {
			s.Types, s.Type = nil, notNull(s)
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || s.Properties == nil {
		return
	}
	s.AdditionalProperties = nil
	for f := range t.Fields() {
		p := s.Properties[jsonName(f)]
		if p == nil {
			continue // not part of the JSON
		}
		finish(p, f.Type, d)
		p.Description = d.of(t, f)
	}
}

// notNull returns the type of a pointer's target.
func notNull(s *jsonschema.Schema) string {
	for _, t := range s.Types {
		if t != "null" {
			return t
		}
	}
	return s.Type
}

func eventSchema(d docs) (*jsonschema.Schema, error) {
	s, err := inferred[schema.Event](d)
	if err != nil {
		return nil, err
	}
	s.Properties["tool_input"].Type = "object"
	s.Properties["message"].Types = []string{"string", "object"}
	s.Properties["iteration"].Minimum = new(0.0)
	return s, nil
}

func verdictSchema(d docs) (*jsonschema.Schema, error) {
	s, err := inferred[schema.Verdict](d)
	if err != nil {
		return nil, err
	}
	s.Properties["updated_input"].Type = "object"
	s.Properties["effects"].Items = &jsonschema.Schema{Type: "object"}
	return s, nil
}

// resultSchema describes an answer in all its forms: ours, MassGen's and Claude Code's.
func resultSchema(d docs) (*jsonschema.Schema, error) {
	s, err := inferred[schema.Result](d)
	if err != nil {
		return nil, err
	}
	s.Description = "What a hook answers to one event. {} is no opinion. Besides the fabric's own members those of " +
		"MassGen (allowed, modified_args, metadata) and of Claude Code (hookSpecificOutput, continue, stopReason, systemMessage, suppressOutput) are read; an unknown member is ignored beside a known one, but not if the known ones only explain (reason, metadata, stopReason, systemMessage, suppressOutput, and in hookSpecificOutput hookEventName and permissionDecisionReason)."
	injection := s.Properties["injections"].Items
	for _, own := range []string{"hook", "source", "sequence", "sequences", "object"} {
		delete(injection.Properties, own) // set by the fabric
	}
	injection.PropertyOrder, injection.Required = nil, nil
	add := func(name string, p *jsonschema.Schema) {
		s.Properties[name] = p
		s.PropertyOrder = append(s.PropertyOrder, name)
	}
	object := func(description string, properties map[string]*jsonschema.Schema) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", Description: description, Properties: properties}
	}
	s.Properties["decision"] = decisionWord(s.Properties["decision"].Description)
	s.Properties["updated_input"].Type = "object"
	s.Properties["effects"].Items = &jsonschema.Schema{Type: "object"}
	inject := injection.CloneSchemas()
	inject.Description = "One injection."
	add("inject", inject)
	add("allowed", &jsonschema.Schema{Types: []string{"null", "boolean"}, Description: "MassGen's form: false and null are a deny."})
	add("modified_args", text("MassGen's form: the tool's whole new input, as a JSON object in a string. It takes precedence over updated_input."))
	add("metadata", object("MassGen's form.", map[string]*jsonschema.Schema{"reason": text("The reason, if reason is absent.")}))
	specific := object("Claude Code's form.", map[string]*jsonschema.Schema{
		"hookEventName":            text("The event, as Claude Code calls it."),
		"permissionDecision":       decisionWord("The decision. If decision is present too, the stricter one counts."),
		"permissionDecisionReason": text("The reason, if reason is absent."),
		"updatedInput":             {Type: "object", Description: "The tool's whole new input."},
		"additionalContext":        text("An injection with the strategy tool_result."),
		"updatedToolOutput":        {Description: "The tool's new output."},
		"updatedMCPToolOutput":     {Description: "The new output of an MCP tool."},
		"modifiedOutput":           {Description: "The new output of the tool, as MassGen's adapter calls it."},
	})
	knowsOne(specific, "hookEventName", "permissionDecisionReason")
	add("hookSpecificOutput", specific)
	add("continue", &jsonschema.Schema{Type: "boolean", Description: "Claude Code's form: false ends the run."})
	add("stopReason", text("Claude Code's form: the reason of continue: false."))
	add("systemMessage", &jsonschema.Schema{Description: "Claude Code's form: a text for the user of the runtime. It has no effect, because the fabric shows nothing to users."})
	add("suppressOutput", &jsonschema.Schema{Description: "Claude Code's form: it has no effect."})
	knowsOne(s, "reason", "metadata", "stopReason", "systemMessage", "suppressOutput", "hookSpecificOutput")
	s.AnyOf = append(s.AnyOf, &jsonschema.Schema{ // known if it has members that do more than explain
		Required:   []string{"hookSpecificOutput"},
		Properties: map[string]*jsonschema.Schema{"hookSpecificOutput": {Not: specific.AnyOf[0].CloneSchemas()}},
	})
	nullable(s)
	return s, nil
}

// knowsOne requires one of the properties of s, except the named ones, in an object that
// has other members than these.
func knowsOne(s *jsonschema.Schema, except ...string) {
	s.AnyOf = []*jsonschema.Schema{{PropertyNames: enum(except...)}}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(except, name) {
			s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Required: []string{name}})
		}
	}
}

func text(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: description}
}

// decisionWord describes a decision in a hook's answer, in our words or other systems'.
func decisionWord(description string) *jsonschema.Schema {
	s := enum(schema.Continue, schema.Allow, schema.Ask, schema.Deny, schema.Retry, schema.Stop, schema.Fail, schema.Reject, "approve", "block")
	s.Description = description
	return s
}

// nullable permits null for every part, which counts as absent.
func nullable(s *jsonschema.Schema) {
	nested := slices.Collect(maps.Values(s.Properties))
	if s.Items != nil {
		nested = append(nested, s.Items)
	}
	for _, p := range nested {
		nullable(p)
		if p.Type != "" {
			p.Types, p.Type = []string{"null", p.Type}, ""
		}
		if p.Enum != nil && !slices.Contains(p.Enum, nil) {
			p.Enum = append(p.Enum, nil)
		}
	}
}
