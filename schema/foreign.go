package schema

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// whole reports whether m, which was read from v, has everything in v. Objects of other
// shapes may look like a message without calls or text.
func (m *Message) whole(v jsontext.Value) bool {
	for i := range m.ToolCalls {
		if m.ToolCalls[i].Name == "" {
			return m.completion(v)
		}
	}
	if m.Content != "" || len(m.ToolCalls) > 0 || m.Result != nil || !isNull(m.Native) {
		return true
	}
	var members map[string]jsontext.Value
	if Unmarshal(v, &members) != nil {
		return false
	}
	if members["content"].Kind() == '"' {
		return true
	}
	for name := range members {
		switch name {
		case "role", "content", "tool_calls", "tool_result", "native":
		default:
			return false
		}
	}
	return true
}

// completion reads the calls of a message of Chat Completions, which are one level
// deeper, and reports whether v is such a message.
func (m *Message) completion(v jsontext.Value) bool {
	var of struct {
		ToolCalls []struct {
			Function struct {
				Name      string         `json:"name"`
				Arguments jsontext.Value `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	}
	if Unmarshal(v, &of) != nil || len(of.ToolCalls) != len(m.ToolCalls) {
		return false
	}
	for i, c := range of.ToolCalls {
		if c.Function.Name == "" {
			return false
		}
		m.ToolCalls[i].Name, m.ToolCalls[i].Input = c.Function.Name, argumentsOf(c.Function.Arguments)
	}
	m.Native = v.Clone()
	return true
}

// argumentsOf returns the object in a string, or the string itself if it has none.
func argumentsOf(v jsontext.Value) jsontext.Value {
	var text string
	if v.Kind() != '"' || Unmarshal(v, &text) != nil {
		return v
	}
	switch object := jsontext.Value(bytes.TrimSpace([]byte(text))); {
	case len(object) == 0:
		return jsontext.Value(`{}`)
	case validObject(object) && object.IsValid(options):
		return object
	}
	return v
}
