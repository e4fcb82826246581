package dialect

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

func (in Input) env(name string) string {
	if in.Env == nil {
		return ""
	}
	return in.Env(name)
}

func begun(in Input) *Call {
	return &Call{Moment: in.Moment, Event: schema.Event{HookType: in.Moment.Event}}
}

// become moves c to the moment m, which may have other abilities or another event.
func (c *Call) become(m Moment) { c.Moment, c.Event.HookType = m, m.Event }

// open determines the moment of a payload and reads it into p. named is the member that names the event;
// empty: no member does. seen are the members that open reads even from a broken payload.
func (c *Call) open(d Dialect, in Input, runtime, named string, p any, seen map[string]*string) error {
	var name string
	if named != "" {
		seen[named] = &name
	}
	glance(in.Payload, seen)
	disagrees := c.settle(d, in, name)
	if err := c.read(runtime, in.Payload, p); err != nil {
		return err
	}
	if disagrees == nil && named != "" && name == "" {
		return unnamed(runtime, named)
	}
	return disagrees
}

// settle determines the moment of c, from the command line or the payload. If both name one, they must agree.
func (c *Call) settle(d Dialect, in Input, named string) error {
	err := c.agree(d, in, named)
	if c.Moment.Name != "" && !c.Event.HookType.HasTool() {
		c.Event.ToolName, c.Event.ToolUseID = "", ""
	}
	return err
}

func (c *Call) agree(d Dialect, in Input, named string) error {
	var theirs Moment
	for _, m := range d.Moments() {
		if m.Name == named {
			theirs = m
		}
	}
	switch ours := in.Moment.Name; {
	case ours == "" && named == "":
		return fmt.Errorf("the payload on stdin names no event; write --event, such as --event %s", d.Moments()[0].Name)
	case theirs.Name == "" && named != "":
		return fmt.Errorf("the payload on stdin has the event %.64q, which this runtime does not have; name the runtime that runs this hook with --runtime", named)
	case ours == "":
		c.become(theirs)
	case named != "" && ours != named:
		// If only one of them can refuse, it counts, so that a guarded call does not pass as another event.
		if theirs.Can[Deny] != Impossible && in.Moment.Can[Deny] == Impossible {
			c.become(theirs)
		}
		return fmt.Errorf("the payload on stdin has the event %.64q, but --event is %s; configure the hook at the event that --event names", named, ours)
	}
	return nil
}

func (c *Call) read(runtime string, payload []byte, into any) error {
	data := trimmed(payload)
	if jsontext.Value(data).Kind() != '{' {
		return fmt.Errorf("the payload on stdin is %s, but %s sends one JSON object to a hook", kindOf(data), runtime)
	}
	if err := schema.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading the payload on stdin as one of %s: %w; name the runtime that runs this hook with --runtime", runtime, err)
	}
	c.Payload = data
	return nil
}

// trimmed returns a payload without surrounding space and without a byte order mark.
func trimmed(payload []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(payload), []byte("\xef\xbb\xbf")))
}

// glance reads strings of the outermost object, up to the first syntax error. The first of a name counts.
func glance(payload []byte, into map[string]*string) {
	dec := jsontext.NewDecoder(bytes.NewReader(trimmed(payload)), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return
	}
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			return
		}
		at := into[name.String()]
		value, err := dec.ReadValue()
		if err != nil {
			return
		}
		if at != nil && *at == "" {
			*at = word(value)
		}
	}
}

// inParent reports whether a subagent's own session begins or ends: the agent's session continues.
func (c *Call) inParent() bool {
	t := c.Event.HookType
	own := c.Parent != "" && (t == schema.SessionStart || t == schema.SessionEnd)
	if own {
		c.become(Moment{Name: c.Moment.Name})
	}
	return own
}

// tool sets the tool call of the event. The fabric cannot judge an input that is not an object.
func (c *Call) tool(runtime, name string, input jsontext.Value) error {
	e := &c.Event
	e.ToolName, e.ToolInput = name, present(input)
	e.ToolKind, e.ToolArgs = schema.ToolFacts(runtime, name, e.ToolInput)
	switch {
	case name == "":
		return fmt.Errorf("the payload on stdin names no tool, but %s names one at %s; correct --runtime or --event", runtime, c.Moment.Name)
	case e.ToolInput == nil && e.HookType == schema.PreToolUse || e.ToolInput != nil && e.ToolInput.Kind() != '{':
		shown := kindOf(e.ToolInput)
		e.ToolInput = nil
		return fmt.Errorf("the input of the tool %.64q on stdin is %s; it must be a JSON object", name, shown)
	}
	return nil
}

// prompted sets the prompt of the event, which may be empty, but not missing: no hook could judge it.
func (c *Call) prompted(runtime string, prompt *string) error {
	if prompt == nil {
		return unnamed(runtime, "prompt")
	}
	c.Event.Prompt = *prompt
	return nil
}

// failed makes the event after a tool call one of a call that failed.
func (c *Call) failed(why jsontext.Value) {
	m := c.Moment
	m.Event = schema.ToolError
	c.become(m)
	c.Event.Error = errorText(why)
}

// keyed sets the keys of a tool call: from the runtime's id of the call, or else from its contents.
func (c *Call) keyed() {
	if id := c.Event.ToolUseID; id != "" {
		c.Key, c.ByID, c.Pair = c.phase()+id, true, id
		return
	}
	same := c.Event
	same.SessionID += c.Subagent
	c.Pair = callHash(&same)
	c.Key = c.phase() + c.Pair
}

// phase returns the beginning of the key of a tool's event.
func (c *Call) phase() string {
	if c.Event.HookType == schema.PreToolUse {
		return "pre/"
	}
	return "post/"
}

// callHash returns the same value for all deliveries of a call without an id. Numbers count as they are
// written, because the tool may distinguish those that are equal as a float64.
func callHash(e *schema.Event) string {
	input := e.ToolInput.Clone()
	if input.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)) != nil {
		input = e.ToolInput
	}
	h := sha256.New()
	for _, part := range []string{e.SessionID, e.ToolName, string(input)} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// label adds members to the event's labels, as name, value, name, value: strings, and true.
func (c *Call) label(pairs ...any) {
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		v, _ := pairs[i+1].(jsontext.Value)
		value := word(v)
		if v.Kind() == 't' {
			value = "true"
		}
		if value == "" {
			continue
		}
		if c.Event.Labels == nil {
			c.Event.Labels = map[string]string{}
		}
		c.Event.Labels[name] = clip(value)
	}
}

// PutOff reports whether a hook has already put off the end of this turn.
func (c *Call) PutOff() bool { return c.Event.Labels[putOff] != "" }

// putOff is the label of such an end, under the name that most runtimes use.
const putOff = "stop_hook_active"

func clip(s string) string { return s[:min(len(s), 256)] }

// parsed returns the JSON inside a string, or else v itself.
func parsed(v jsontext.Value) jsontext.Value {
	s := strings.TrimSpace(word(v))
	if s == "" {
		return present(v)
	}
	if inner := jsontext.Value(s); (inner.Kind() == '{' || inner.Kind() == '[') && inner.IsValid() {
		return inner
	}
	return v
}

// unnamed returns the error for a payload without a member that its runtime always sends.
func unnamed(runtime, member string) error {
	return fmt.Errorf("the payload on stdin has no %s, which %s always sends; name the runtime that runs this hook with --runtime", member, runtime)
}

// kindOf names the kind of a payload that is not a JSON object.
func kindOf(data []byte) string {
	if len(data) == 0 {
		return "empty"
	}
	return schema.KindName(jsontext.Value(data).Kind())
}

// word returns a JSON string; empty: the value has another kind.
func word(v jsontext.Value) string {
	var s string
	if v.Kind() != '"' || schema.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// present returns the first of the values that is not null; nil: there is none.
func present(all ...jsontext.Value) jsontext.Value {
	for _, v := range all {
		if len(v) > 0 && v.Kind() != 'n' {
			return v
		}
	}
	return nil
}

// errorText returns an error as a text: its message, if it is an object with one.
func errorText(v jsontext.Value) string {
	var o struct {
		Message string `json:"message"`
	}
	if v.Kind() == '{' && schema.Unmarshal(v, &o) == nil && o.Message != "" {
		return o.Message
	}
	return Text(v)
}
