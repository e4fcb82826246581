package cond

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/action"
)

// field is a field of the event as conditions see it.
type field struct {
	name string
	kind *cel.Type
	// of returns its value; nil: the value is JSON that raw returns, or derived from
	// other fields.
	of   func(*schema.Event) any
	raw  func(*schema.Event) jsontext.Value
	made func(*facts, *schema.Event) (any, error)
}

// routed are the fields that are known without the event's body.
var routed = []string{"hook_type", "event", "event_id", "session_id", "agent_id", "agent", "tool_name"}

// route returns the value of a field that is known without the event's body.
func route(r *schema.Routing, name string) (string, bool) {
	switch name {
	case "hook_type", "event":
		return string(r.Event), true
	case "event_id":
		return r.ID, true
	case "session_id":
		return r.Session, true
	case "agent_id", "agent":
		return r.Agent, true
	case "tool_name":
		return r.Tool, true
	}
	return "", false
}

// fields are the fields in the body in the event's order, and the fields derived from
// them.
var fields = []field{
	{name: "orchestrator_id", kind: cel.StringType, of: func(e *schema.Event) any { return e.OrchestratorID }},
	{name: "runtime", kind: cel.StringType, of: func(e *schema.Event) any { return e.Runtime }},
	{name: "timestamp", kind: cel.TimestampType, of: func(e *schema.Event) any { return e.Timestamp }},
	{name: "tool_kind", kind: cel.StringType, of: func(e *schema.Event) any { return e.ToolKind }},
	{name: "tool_args", kind: cel.MapType(cel.StringType, cel.DynType), raw: func(e *schema.Event) jsontext.Value { return e.ToolArgs }},
	{name: "tool_input", kind: cel.MapType(cel.StringType, cel.DynType), raw: func(e *schema.Event) jsontext.Value { return e.ToolInput }},
	{name: "action", kind: cel.ObjectType("action.Action"), made: parsed},
	{name: "tool_output", kind: cel.DynType, raw: func(e *schema.Event) jsontext.Value { return e.ToolOutput }},
	{name: "tool_use_id", kind: cel.StringType, of: func(e *schema.Event) any { return e.ToolUseID }},
	{name: "error", kind: cel.StringType, of: func(e *schema.Event) any { return e.Error }},
	{name: "message", kind: cel.DynType, raw: func(e *schema.Event) jsontext.Value { return e.Message }},
	{name: "prompt", kind: cel.StringType, of: func(e *schema.Event) any { return e.Prompt }},
	{name: "response", kind: cel.DynType, raw: func(e *schema.Event) jsontext.Value { return e.Response }},
	{name: "iteration", kind: cel.IntType, of: func(e *schema.Event) any { return e.Iteration }},
	{name: "cwd", kind: cel.StringType, of: func(e *schema.Event) any { return e.Cwd }},
	{name: "labels", kind: cel.MapType(cel.StringType, cel.StringType), of: func(e *schema.Event) any { return e.Labels }},
	{name: "flags", kind: cel.MapType(cel.StringType, cel.DynType), raw: func(e *schema.Event) jsontext.Value { return e.Flags }},
	{name: "tool_call", kind: cel.DynType, made: toolCall},
	{name: "tool_result", kind: cel.DynType, made: toolResult},
	{name: "assistant_message", kind: cel.DynType, made: assistantMessage},
}

func declarations() []cel.EnvOption {
	options := make([]cel.EnvOption, 0, len(routed)+len(fields)+32)
	options = append(options, ext.NativeTypes(reflect.TypeFor[action.Action](), ext.ParseStructTag("json")))
	for _, name := range routed {
		options = append(options, cel.Variable(name, cel.StringType))
	}
	for _, f := range fields {
		options = append(options, cel.Variable(f.name, f.kind))
	}
	return options
}

// parsed returns the facts of the call. At events that are not about a tool they are empty.
func parsed(_ *facts, e *schema.Event) (any, error) {
	if !e.HookType.HasTool() {
		return &action.Action{}, nil
	}
	return action.Parse(e), nil
}

// facts are the fields of one event. Each is decoded once, when a condition first uses
// it.
type facts struct {
	view   *dispatch.View
	values map[string]any
}

// factsOf returns the fields of an event.
func factsOf(v *dispatch.View) *facts {
	f, ok := v.Made.(*facts)
	if !ok {
		f = &facts{view: v}
		v.Made = f
	}
	return f
}

// Action returns the facts of the call, as expressions on the same view see them. They must not be
// changed.
func Action(v *dispatch.View) *action.Action {
	value, _ := factsOf(v).ResolveName("action")
	if a, ok := value.(*action.Action); ok {
		return a
	}
	return &action.Action{Unparsed: "the event cannot be read"}
}

// Parent returns nil: an event has no outer scope.
func (*facts) Parent() interpreter.Activation { return nil }

// ResolveName returns the value of a field. A field that cannot be read is a CEL error,
// which counts only if the condition depends on it.
func (f *facts) ResolveName(name string) (any, bool) {
	if v, ok := route(&f.view.Routing, name); ok {
		return v, true
	}
	if v, ok := f.values[name]; ok {
		return v, true
	}
	for i := range fields {
		if fields[i].name == name {
			return f.read(&fields[i]), true
		}
	}
	return nil, false
}

func (f *facts) read(of *field) any {
	e, err := f.view.Event()
	if err != nil {
		return types.NewErr("%v", err)
	}
	if of.of != nil {
		return of.of(e)
	}
	if of.raw != nil {
		return f.json(of.name, of.raw(e), of.kind != cel.DynType)
	}
	v, err := of.made(f, e)
	if err != nil {
		v = types.NewErr("%s: %v", of.name, err)
	}
	return f.cache(of.name, v)
}

// json decodes a field once and caches it, also for fields derived from it.
func (f *facts) json(name string, raw jsontext.Value, isMap bool) any {
	if v, ok := f.values[name]; ok {
		return v
	}
	v, err := decode(raw)
	if err != nil {
		v = types.NewErr("%s: %v", name, err)
	} else if v == nil && isMap {
		v = map[string]any{}
	}
	return f.cache(name, v)
}

func (f *facts) cache(name string, v any) any {
	if f.values == nil {
		f.values = make(map[string]any, 1)
	}
	f.values[name] = v
	return v
}

// maxValues bounds the values of one field, so that a pass over all of them is fast.
const maxValues = 1 << 14

// decode decodes JSON into CEL's types. Whole numbers are integers, so that
// `tool_input.lines > 100` compares integers.
func decode(raw jsontext.Value) (any, error) {
	v, _, err := decodeWithin(raw, maxValues)
	return v, err
}

// decodeWithin decodes JSON of at most left values, and returns how many are left.
func decodeWithin(raw jsontext.Value, left int) (any, int, error) {
	if len(raw) == 0 {
		return nil, left, nil
	}
	d := decoding{dec: jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true)), left: left}
	v, err := d.value()
	return v, d.left, err
}

// decoding is the decoding of one field.
type decoding struct {
	dec  *jsontext.Decoder
	left int
}

func (d *decoding) value() (any, error) {
	if d.left--; d.left < 0 {
		return nil, fmt.Errorf("it has more than %d values, too many for a condition", maxValues)
	}
	t, err := d.dec.ReadToken()
	if err != nil {
		return nil, fmt.Errorf("reading the event: %w", err)
	}
	switch t.Kind() {
	case '{':
		return d.object()
	case '[':
		return d.list()
	case '"':
		return t.String(), nil
	case '0':
		return number(t), nil
	case 't', 'f':
		return t.Bool(), nil
	}
	return nil, nil
}

func (d *decoding) object() (any, error) {
	m := make(map[string]any)
	for d.dec.PeekKind() != '}' {
		key, err := d.dec.ReadToken()
		if err != nil {
			return nil, fmt.Errorf("reading the event: %w", err)
		}
		name := key.String()
		if m[name], err = d.value(); err != nil {
			return nil, err
		}
	}
	_, err := d.dec.ReadToken()
	return m, err
}

func (d *decoding) list() (any, error) {
	var l []any
	for d.dec.PeekKind() != ']' {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	_, err := d.dec.ReadToken()
	return l, err
}

// exact is the limit up to which floating point numbers represent every integer.
const exact = 1 << 53

func number(t jsontext.Token) any {
	if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
		return n
	}
	v, err := t.Float()
	if err != nil || v != math.Trunc(v) || math.Abs(v) >= exact {
		return v // out of range it is infinite, which is larger than any number
	}
	return int64(v)
}
