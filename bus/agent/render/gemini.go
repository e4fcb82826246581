package render

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// geminiContent is a content of generateContent.
type geminiContent struct {
	Role string `json:"role"`
	// Parts are made here, or as the API sent them.
	Parts []any `json:"parts"`

	// responses means that it has the results of calls, and nothing may be added to it.
	responses bool
}

type geminiPart struct {
	FunctionResponse *geminiResponse `json:"functionResponse,omitzero"`
	Text             string          `json:"text,omitzero"`
}

// geminiResponse names a call by its function, and by its id if the model gave one.
type geminiResponse struct {
	ID       string                    `json:"id,omitzero"`
	Name     string                    `json:"name"`
	Response map[string]jsontext.Value `json:"response"`
}

// gemini puts all responses of a turn into one content. The API refuses a turn in which
// one is missing or other parts precede them.
func gemini(turn []rendering) ([]any, error) {
	var results []any
	var messages []any
	for _, s := range turn {
		if s.result != nil {
			r, err := geminiResult(s)
			if err != nil {
				return nil, err
			}
			results = append(results, geminiPart{FunctionResponse: r})
		}
		for _, t := range s.texts {
			messages = append(messages, geminiContent{Role: "user", Parts: []any{geminiPart{Text: t}}})
		}
	}
	if len(results) == 0 {
		return messages, nil
	}
	return append([]any{geminiContent{Role: "user", Parts: results, responses: true}}, messages...), nil
}

// geminiResult returns a response with the API's own keys, output and error.
func geminiResult(s rendering) (*geminiResponse, error) {
	r := s.result
	if err := r.named(); err != nil {
		return nil, err
	}
	value := r.output
	if len(value) == 0 || len(s.notes) > 0 {
		text, err := schema.Marshal(separated(r.words(), s.notes))
		if err != nil {
			return nil, fmt.Errorf("encoding a tool's result: %w", err)
		}
		value = text
	}
	key := "output"
	if r.failed {
		key = "error"
	}
	return &geminiResponse{ID: r.id, Name: r.tool, Response: map[string]jsontext.Value{key: value}}, nil
}
