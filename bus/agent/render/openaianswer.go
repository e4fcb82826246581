package render

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// openAIKept is what Native keeps of an answer of Chat Completions.
type openAIKept struct {
	Stop    string         `json:"finish_reason,omitzero"`
	Message jsontext.Value `json:"message"`
}

// openAIAnswer reads an answer of Chat Completions.
func openAIAnswer(response jsontext.Value) (a answer, err error) {
	var in struct {
		Choices []struct {
			Stop    jsontext.Value `json:"finish_reason"`
			Message jsontext.Value `json:"message"`
		} `json:"choices"`
	}
	if err := schema.Unmarshal(response, &in); err != nil {
		return a, unread(err)
	}
	if len(in.Choices) == 0 || in.Choices[0].Message.Kind() != '{' {
		return a, misshapen("a completion with a message among its choices", response)
	}
	kept := openAIKept{Stop: wordOf(in.Choices[0].Stop), Message: in.Choices[0].Message}
	if a, err = openAIMessageOf(kept.Message); err != nil {
		return a, err
	}
	if a.native, err = schema.Marshal(&kept); err != nil {
		return a, unread(err)
	}
	return a, a.ended(kept.Stop, kept.Stop == "content_filter", kept.Stop == "length")
}

// openAIMessageOf reads a message. A refusal is the text of a message without other text.
func openAIMessageOf(message jsontext.Value) (a answer, err error) {
	m := objectOf(message)
	if text := openAIText(m["content"]); text != "" {
		a.blocks = append(a.blocks, block{text: &text})
	} else if text := wordOf(m["refusal"]); text != "" {
		a.blocks = append(a.blocks, block{text: &text})
	}
	for i, raw := range listOf(m["tool_calls"]) {
		one := objectOf(raw)
		function := objectOf(one["function"])
		call, err := called(i, one["id"], function["name"])
		if err != nil {
			return a, err
		}
		call.Input = openAIInput(function["arguments"])
		odd := wordOf(one["type"]) != "function" || textOf(function["arguments"]) == nil // some compatible APIs differ here
		a.blocks = append(a.blocks, block{raw: raw, call: call, odd: odd})
	}
	return a, nil
}

// openAIText returns the text of a content: a string, or a list of parts.
func openAIText(content jsontext.Value) string {
	if s := textOf(content); s != nil {
		return *s
	}
	var text strings.Builder
	for _, part := range listOf(content) {
		if m := objectOf(part); wordOf(m["type"]) == "text" {
			text.WriteString(wordOf(m["text"]))
		}
	}
	return text.String()
}

// openAIInput decodes a string of arguments; if that is not an object, it returns the
// string.
func openAIInput(arguments jsontext.Value) jsontext.Value {
	s := textOf(arguments)
	if s == nil {
		return inputOf(arguments)
	}
	v := jsontext.Value(bytes.TrimSpace([]byte(*s)))
	if len(v) == 0 {
		return jsontext.Value(`{}`)
	}
	if objectOf(v) == nil {
		return arguments
	}
	return v
}

// openAINative returns the members of a step's message in this API's form, and their
// meaning.
func openAINative(s *step) (members map[string]jsontext.Value, a answer) {
	members = objectOf(s.native)
	if m := members["message"]; m.Kind() == '{' {
		members = objectOf(m)
	}
	if members["parts"] != nil || wordOf(members["type"]) == "message" || wordOf(members["role"]) != s.role {
		return nil, a
	}
	if s.role == schema.RoleUser && !openAIParts(members["content"]) {
		return nil, a
	}
	raw, err := schema.Marshal(members)
	if err == nil {
		a, err = openAIMessageOf(raw)
	}
	if err != nil {
		return nil, answer{}
	}
	return members, a
}

// openAIParts reports whether a content is a list of parts that a user of this API may
// send.
func openAIParts(content jsontext.Value) bool {
	parts := listOf(content)
	for _, p := range parts {
		switch wordOf(objectOf(p)["type"]) {
		case "text", "image_url", "input_audio", "file":
		default:
			return false
		}
	}
	return len(parts) > 0
}
