package model

import (
	"fmt"
	"io"
	"net/http"

	"github.com/hookfabric/hookfabric/schema"
)

// completions is OpenAI's older protocol, which other vendors use, too.
type completions struct{}

func (completions) read(body []byte) (Request, error) {
	var in struct {
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		Messages []struct {
			Role string `json:"role"`
		} `json:"messages"`
	}
	if err := schema.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	r := Request{Turn: -1}
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Function.Name)
	}
	if len(in.Tools) == 0 {
		return r, nil
	}
	r.Turn = 0
	for _, m := range in.Messages {
		if m.Role == "assistant" {
			r.Turn++
		}
	}
	return r, nil
}

func (completions) write(w http.ResponseWriter, t Turn, body []byte) error {
	var in struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	if err := schema.Unmarshal(body, &in); err != nil {
		return err
	}
	message := object{"role": "assistant", "content": nil}
	why := "stop"
	if t.Text != "" {
		message["content"] = t.Text
	}
	if len(t.Calls) > 0 {
		calls, err := t.functions()
		if err != nil {
			return err
		}
		message["tool_calls"], why = calls, "tool_calls"
	}
	if t.Cut {
		why = "length"
	}
	answer := object{"id": "chatcmpl_1", "object": "chat.completion", "created": 1, "model": in.Model,
		"usage": object{"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}}
	if !in.Stream {
		answer["choices"] = []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": why}}
		return send(w, answer)
	}
	answer["object"], answer["choices"] = "chat.completion.chunk", []object{{"index": 0, "delta": message, "finish_reason": why}}
	if err := stream(w, []event{{data: answer}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "data: [DONE]\n\n")
	return err
}

// functions returns the turn's calls.
func (t Turn) functions() ([]object, error) {
	all := make([]object, 0, len(t.Calls))
	for i, c := range t.Calls {
		arguments, ok := c.Input.(string)
		if !ok {
			data, err := schema.Marshal(c.Input)
			if err != nil {
				return nil, fmt.Errorf("encoding the input of %s: %w", c.Tool, err)
			}
			arguments = string(data)
		}
		all = append(all, object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Tool, "arguments": arguments}})
	}
	return all, nil
}
