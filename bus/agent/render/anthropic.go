package render

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// anthropicMessage is a message of the Messages API.
type anthropicMessage struct {
	Role string `json:"role"`
	// Content are blocks, made here or as the API sent them.
	Content []any `json:"content"`
}

type anthropicBlock struct {
	Type      string `json:"type"`
	ToolUseID string `json:"tool_use_id,omitzero"`
	// Content is a string or a list of blocks.
	Content jsontext.Value `json:"content,omitzero"`
	IsError bool           `json:"is_error,omitzero"`
	Text    string         `json:"text,omitzero"`
}

// anthropic needs no separators, because the API has blocks. The API requires results
// first in the message.
func anthropic(turn []rendering) ([]any, error) {
	var results, notes []any
	var messages []any
	for _, s := range turn {
		if r := s.result; r != nil {
			if err := r.identified(); err != nil {
				return nil, err
			}
			content, err := anthropicContent(r)
			if err != nil {
				return nil, err
			}
			results = append(results, anthropicBlock{Type: "tool_result", ToolUseID: r.id, Content: content, IsError: r.failed})
		}
		for _, n := range s.notes {
			notes = append(notes, anthropicText(n))
		}
		for _, t := range s.texts {
			messages = append(messages, anthropicMessage{Role: "user", Content: []any{anthropicText(t)}})
		}
	}
	if len(results)+len(notes) == 0 {
		return messages, nil
	}
	return append([]any{anthropicMessage{Role: "user", Content: append(results, notes...)}}, messages...), nil
}

func anthropicText(text string) anthropicBlock { return anthropicBlock{Type: "text", Text: text} }

// anthropicContent returns a result's content: the tool's output if it is blocks that the
// API accepts, else text.
func anthropicContent(r *result) (jsontext.Value, error) {
	if isBlocks(r.output) {
		return r.output, nil
	}
	text := r.words()
	if text == "" {
		return nil, nil
	}
	return schema.Marshal(text)
}

// isBlocks reports whether a tool's output is a list of text and image blocks of the API.
func isBlocks(output jsontext.Value) bool {
	if output.Kind() != '[' {
		return false
	}
	var blocks []map[string]jsontext.Value
	if schema.Unmarshal(output, &blocks) != nil || len(blocks) == 0 {
		return false
	}
	for _, b := range blocks {
		text := string(b["type"]) == `"text"` && b["text"].Kind() == '"' && len(b["text"]) > 2
		image := string(b["type"]) == `"image"` && b["source"].Kind() == '{'
		if len(b) != 2 || !text && !image {
			return false
		}
	}
	return true
}
