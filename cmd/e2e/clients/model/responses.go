package model

import (
	"fmt"
	"net/http"

	"github.com/hookfabric/hookfabric/schema"
)

// responses is OpenAI's protocol.
type responses struct{}

// A tool of this protocol may be a namespace of others.
type offered struct {
	Type  string    `json:"type"`
	Name  string    `json:"name"`
	Tools []offered `json:"tools"`
}

func (responses) read(body []byte) (Request, error) {
	var in struct {
		Tools []offered `json:"tools"`
		Input []struct {
			Type string `json:"type"`
			Role string `json:"role"`
		} `json:"input"`
	}
	if err := schema.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	r := Request{Turn: -1}
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Name)
		for _, below := range t.Tools {
			r.Tools = append(r.Tools, t.Name+"/"+below.Name)
		}
	}
	if len(in.Tools) == 0 {
		return r, nil
	}
	r.Turn = 0
	said := false // the previous item is of the same turn
	for _, item := range in.Input {
		own := item.Type == "function_call" || item.Type == "custom_tool_call" || item.Role == "assistant"
		if own && !said {
			r.Turn++
		}
		said = own
	}
	return r, nil
}

func (responses) write(w http.ResponseWriter, t Turn, _ []byte) error {
	id := "resp_1"
	events := []event{{"response.created", object{"type": "response.created", "response": object{"id": id}}}}
	items, err := t.items()
	if err != nil {
		return err
	}
	for i, item := range items {
		events = append(events, event{"response.output_item.done",
			object{"type": "response.output_item.done", "output_index": i, "item": item}})
	}
	usage := object{"input_tokens": 10, "input_tokens_details": nil, "output_tokens": 10, "output_tokens_details": nil, "total_tokens": 20}
	return stream(w, append(events, event{"response.completed",
		object{"type": "response.completed", "response": object{"id": id, "usage": usage}}}))
}

// items returns the turn as output.
func (t Turn) items() ([]object, error) {
	var all []object
	if t.Text != "" {
		all = append(all, object{"type": "message", "role": "assistant", "id": "msg_1",
			"content": []object{{"type": "output_text", "text": t.Text}}})
	}
	for _, c := range t.Calls {
		if text, ok := c.Input.(string); ok { // a tool with free text as input
			all = append(all, object{"type": "custom_tool_call", "call_id": c.ID, "name": c.Tool, "input": text})
			continue
		}
		input, err := schema.Marshal(c.Input)
		if err != nil {
			return nil, fmt.Errorf("encoding the input of %s: %w", c.Tool, err)
		}
		item := object{"type": "function_call", "call_id": c.ID, "name": c.Tool, "arguments": string(input)}
		if c.Namespace != "" {
			item["namespace"] = c.Namespace
		}
		all = append(all, item)
	}
	return all, nil
}
