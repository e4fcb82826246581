package render

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A Tool is the description of a tool for a model.
type Tool struct {
	// Name is the name by which the model calls the tool.
	Name string `json:"name"`
	// Description says what the tool does; empty: the name is enough.
	Description string `json:"description,omitzero"`
	// Schema is the JSON Schema of the input; absent: any object.
	Schema jsontext.Value `json:"schema,omitzero"`
}

// A Request is the conversation's part of an API request. Its JSON has the members that the API
// expects. Add other members, such as the model's name, beside them.
type Request struct {
	// System and Messages are members of the Messages API and of Chat Completions, which has no
	// System.
	System   jsontext.Value   `json:"system,omitzero"`
	Messages []jsontext.Value `json:"messages,omitzero"`
	// SystemInstruction and Contents are members of generateContent.
	SystemInstruction jsontext.Value   `json:"systemInstruction,omitzero"`
	Contents          []jsontext.Value `json:"contents,omitzero"`
	// Tools lists the declarations; empty: the model cannot call tools.
	Tools []jsontext.Value `json:"tools,omitzero"`
}

// Conversation returns a whole conversation as a request.
//
// The results of calls follow the message with the calls, in the order of the calls, as every
// API requires. Messages between them come after the results. Conversation omits blank texts
// and empty messages. It returns an error if a call has no result, or a result no call.
//
// It sends back what the API itself said ([schema.Message.Native]), with later changes applied.
// System messages at the start go to the API's place for them. A later one stays in place: as a
// system message in Chat Completions, and elsewhere in a user message, with a frame that no
// user can imitate. The Messages API and generateContent require alternating turns that begin
// and end with the user. Conversation merges neighbours. It adds a user's line if the start was
// dropped or the model spoke last.
func Conversation(f Format, messages []schema.Message, tools []Tool) (Request, error) {
	w, err := conversing(f)
	if err != nil {
		return Request{}, err
	}
	steps, err := stepsOf(messages)
	if err != nil {
		return Request{}, err
	}
	var r Request
	if err := w.write(f, steps, &r); err != nil {
		return Request{}, err
	}
	r.Tools, err = declared(tools, w.declare)
	return r, err
}

// An api is the request format of one vendor.
type api struct {
	write   func(f Format, steps []step, r *Request) error
	declare func(tools []Tool) []any
	read    func(response jsontext.Value) (answer, error)
}

func conversing(f Format) (api, error) {
	switch f {
	case Anthropic:
		return api{anthropicConversation, anthropicTools, anthropicAnswer}, nil
	case OpenAI, OpenAIStructured, Grok:
		return api{openAIConversation, openAITools, openAIAnswer}, nil
	case Gemini:
		return api{geminiConversation, geminiTools, geminiAnswer}, nil
	}
	_, err := ParseFormat(string(f))
	return api{}, err
}

// declared returns the tools as an API declares them.
func declared(tools []Tool, declare func([]Tool) []any) ([]jsontext.Value, error) {
	for i, t := range tools {
		if t.Name == "" {
			return nil, fmt.Errorf("tool %d has no name; write the one that the model is to call", i+1)
		}
		if k := t.Schema.Kind(); len(t.Schema) > 0 && k != '{' {
			return nil, fmt.Errorf("the schema of the tool %.100q is %s; write a JSON Schema as an object", t.Name, schema.KindName(k))
		}
	}
	if len(tools) == 0 {
		return nil, nil
	}
	return encoded(declare(tools))
}

// schemaOr returns the schema of a tool's input, or one for any object, for APIs that
// require a schema.
func (t *Tool) schemaOr() jsontext.Value {
	if len(t.Schema) > 0 {
		return t.Schema
	}
	return jsontext.Value(`{"type":"object","properties":{}}`)
}

func encoded[T any](all []T) ([]jsontext.Value, error) {
	values := make([]jsontext.Value, 0, len(all))
	for _, one := range all {
		data, err := schema.Marshal(one)
		if err != nil {
			return nil, fmt.Errorf("encoding a message: %w", err)
		}
		values = append(values, data)
	}
	return values, nil
}
