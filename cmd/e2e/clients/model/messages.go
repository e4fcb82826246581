package model

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// messages is Anthropic's protocol.
type messages struct{}

func (messages) read(body []byte) (Request, error) {
	var in struct {
		Tools []struct {
			Name string `json:"name"`
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
		r.Tools = append(r.Tools, t.Name)
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

func (messages) write(w http.ResponseWriter, t Turn, body []byte) error {
	var in struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	if err := schema.Unmarshal(body, &in); err != nil {
		return err
	}
	blocks, err := t.blocks()
	if err != nil {
		return err
	}
	why := "end_turn"
	if len(t.Calls) > 0 {
		why = "tool_use"
	}
	if t.Cut {
		why = "max_tokens"
	}
	usage := object{"input_tokens": 10, "output_tokens": 10}
	id := "msg_" + why
	if len(t.Calls) > 0 {
		id += "_" + t.Calls[0].ID // some clients merge messages with the same id
	}
	whole := object{"id": id, "type": "message", "role": "assistant", "model": in.Model, "content": blocks,
		"stop_reason": why, "stop_sequence": nil, "usage": usage}
	if !in.Stream {
		return send(w, whole)
	}
	whole["content"], whole["stop_reason"] = []any{}, nil
	events := []event{{"message_start", object{"type": "message_start", "message": whole}}}
	for i, b := range blocks {
		events = append(events, pieces(i, b)...)
	}
	return stream(w, append(events,
		event{"message_delta", object{"type": "message_delta", "delta": object{"stop_reason": why, "stop_sequence": nil}, "usage": usage}},
		event{"message_stop", object{"type": "message_stop"}}))
}

// blocks returns the turn as content.
func (t Turn) blocks() ([]object, error) {
	var all []object
	if t.Text != "" {
		all = append(all, object{"type": "text", "text": t.Text})
	}
	for _, c := range t.Calls {
		input, err := schema.Marshal(c.Input)
		if err != nil {
			return nil, err
		}
		all = append(all, object{"type": "tool_use", "id": c.ID, "name": c.Tool, "input": jsontext.Value(input)})
	}
	return all, nil
}

// pieces returns the events of a block.
func pieces(i int, block object) []event {
	begun, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": block["text"]}
	if input, ok := block["input"].(jsontext.Value); ok {
		begun = object{"type": "tool_use", "id": block["id"], "name": block["name"], "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": string(input)}
	}
	return []event{
		{"content_block_start", object{"type": "content_block_start", "index": i, "content_block": begun}},
		{"content_block_delta", object{"type": "content_block_delta", "index": i, "delta": delta}},
		{"content_block_stop", object{"type": "content_block_stop", "index": i}},
	}
}

// send answers with one JSON value.
func send(w http.ResponseWriter, v any) error {
	data, err := schema.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(data)
	return err
}
