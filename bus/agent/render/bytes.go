package render

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// MaxInput limits the input of [RequestOf] and [MessageOf], in bytes.
const MaxInput = 64 << 20

// RequestOf is [Conversation] of a JSON object {"messages", "tools"}. It returns JSON.
func RequestOf(f Format, conversation []byte) ([]byte, error) {
	var in struct {
		Messages []schema.Message `json:"messages"`
		Tools    []Tool           `json:"tools"`
	}
	if err := schema.Unmarshal(conversation, &in); err != nil {
		return nil, fmt.Errorf(`the conversation cannot be read: %w; write {"messages": […], "tools": […]}`, err)
	}
	r, err := Conversation(f, in.Messages, in.Tools)
	if err != nil {
		return nil, err
	}
	return schema.Marshal(&r)
}

// MessageOf is [Read], with JSON as its result.
func MessageOf(f Format, response []byte) ([]byte, error) {
	m, err := Read(f, response)
	if err != nil {
		return nil, err
	}
	return schema.Marshal(&m)
}
