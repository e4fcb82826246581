package record

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/plainjson"
)

// body has the needed members of an event as raw JSON; nil: it is missing, or cannot be decoded.
type body struct {
	runtime, kind, labels             jsontext.Value
	input, output, prompt             jsontext.Value
	message, response, failure, facts jsontext.Value
	// fitInput and fitPrompt: that value is in its canonical form; false: unknown.
	fitInput, fitPrompt bool
}

// member returns the field for a member of an event; nil: it is not needed.
func (b *body) member(name string) *jsontext.Value {
	switch name {
	case "runtime":
		return &b.runtime
	case "tool_kind":
		return &b.kind
	case "labels":
		return &b.labels
	case "tool_input":
		return &b.input
	case "tool_output":
		return &b.output
	case "prompt":
		return &b.prompt
	case "message":
		return &b.message
	case "response":
		return &b.response
	case "error":
		return &b.failure
	case "tool_args":
		return &b.facts
	}
	return nil
}

// scan reads the members of an event without decoding them.
func scan(data []byte) body {
	if b, ok := plainScan(data); ok {
		return b
	}
	return fullScan(data)
}

// plainScan is scan for events in the form in which shims send them; otherwise it returns false.
func plainScan(data []byte) (b body, ok bool) {
	ok = plainjson.Members(data, func(name, value []byte, form plainjson.Form) {
		if at := b.member(string(name)); at != nil && *at == nil && value[0] != 'n' {
			*at = value
			b.fitInput = b.fitInput || at == &b.input && form == plainjson.Canonical
			b.fitPrompt = b.fitPrompt || at == &b.prompt && form == plainjson.Canonical
		}
	})
	return b, ok
}

// fullScan is scan for any input: it reads as far as it is valid JSON.
func fullScan(data []byte) (b body) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return b
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return b
		}
		at := b.member(name.String())
		value, err := dec.ReadValue()
		if err != nil {
			return b
		}
		if at != nil && *at == nil && value.Kind() != 'n' {
			end := dec.InputOffset()
			*at = data[end-int64(len(value)) : end : end]
		}
	}
	return b
}

// maxName bounds names from agents.
const maxName = 256

// text returns a string's text, at most maxName bytes of it.
func (b *body) text(v jsontext.Value) string {
	if len(v) <= maxName && plainjson.ASCII(v) && len(v) > 1 && v[0] == '"' && bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	return b.decoded(v)
}

// decoded is text for strings with escapes or non-ASCII characters.
func (*body) decoded(v jsontext.Value) string {
	var s string
	if v.Kind() != '"' || schema.Unmarshal(v, &s) != nil {
		return ""
	}
	return s[:min(len(s), maxName)]
}

// host returns the machine in the event's labels.
func (b *body) host() string {
	if !bytes.Contains(b.labels, []byte(`"`+schema.LabelHost+`"`)) {
		return ""
	}
	var labels map[string]string
	if schema.Unmarshal(b.labels, &labels) != nil {
		return ""
	}
	host := labels[schema.LabelHost]
	return host[:min(len(host), maxName)]
}

// subject returns the value that the hooks judge, and whether it is certainly in its canonical form.
func (b *body) subject() (v jsontext.Value, canonical bool) {
	if b.input != nil {
		return b.input, b.fitInput
	}
	return b.prompt, b.fitPrompt
}

// maxValues bounds the JSON values in one member of an event. The content of a record has no space for more.
const maxValues = maxContent / 2

// document returns the content of an event and of its verdict as one document, without members with too many values, whose
// names are in cut.
func (b *body) document(e *Entry) (doc map[string]any, cut []string) {
	doc = make(map[string]any)
	for _, m := range []struct {
		name  string
		value jsontext.Value
	}{
		{"tool_input", b.input}, {"tool_output", b.output}, {"tool_args", b.facts}, {"prompt", b.prompt}, {"message", b.message}, {"response", b.response},
		{"error", b.failure}, {"updated_input", e.Input}, {"updated_output", e.Output}, {"value", e.Value},
	} {
		if crowded(m.value) {
			cut = append(cut, m.name)
			continue
		}
		var v any
		if len(m.value) > 0 && schema.Unmarshal(m.value, &v) == nil {
			doc[m.name] = v
		}
	}
	return doc, cut
}

// crowded reports whether v has more than maxValues values.
func crowded(v jsontext.Value) bool {
	if len(v) <= maxValues { // each value takes at least a byte
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for n := 0; n <= maxValues; n++ {
		if _, err := dec.ReadToken(); err != nil {
			return false
		}
	}
	return true
}
