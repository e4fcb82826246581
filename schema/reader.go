package schema

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// reader turns an answer into a Result and records the dropped parts.
type reader struct {
	event EventType
	res   Result
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
		r.fault(fmt.Sprintf("%s is %s; it must be a string", field, KindName(v.Kind())))
	}
	return s
}

// object reads an object into v and reports whether there was one.
func (r *reader) object(field string, raw jsontext.Value, v any) bool {
	if isNull(raw) {
		return false
	}
	if err := Unmarshal(raw, v); err != nil || !validObject(raw) {
		r.fault(fmt.Sprintf("%s is %s; it must be an object", field, KindName(raw.Kind())))
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
		r.fault(fmt.Sprintf("%s is %s; it must be a list", field, KindName(raw.Kind())))
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
	r.fault(fmt.Sprintf("%s is %s; it must be a boolean", field, KindName(v.Kind())))
	return false
}

// present returns v, or nil if it is absent or null.
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
