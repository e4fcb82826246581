package render

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A Tool is a tool as a model is told of it.
type Tool struct {
	// Name is what the model calls it by.
	Name string `json:"name"`
	// Description says what it is for; empty: the name says it.
	Description string `json:"description,omitzero"`
	// Schema is the JSON Schema of its input; absent: an object of any kind.
	Schema jsontext.Value `json:"schema,omitzero"`
}

// A Request is what belongs of a conversation into the request of an API. It is
// encoded as the members that the API knows; what else it wants, such as the model's
// name, stands beside them.
type Request struct {
	// System and Messages are those of the Messages API and of Chat Completions,
	// which has no System.
	System   jsontext.Value   `json:"system,omitzero"`
	Messages []jsontext.Value `json:"messages,omitzero"`
	// SystemInstruction and Contents are those of generateContent.
	SystemInstruction jsontext.Value   `json:"systemInstruction,omitzero"`
	Contents          []jsontext.Value `json:"contents,omitzero"`
	// Tools are the declarations; none: the model can call nothing.
	Tools []jsontext.Value `json:"tools,omitzero"`
}

// Conversation is a whole conversation as a request.
//
// Results of calls come right after the message with the calls, in the calls' order,
// as every API wants it; what else was said in between comes after them. Blank texts, and
// messages of which nothing is left, are left out. A conversation in which a call has no
// result, or a result no call, is refused.
//
// What the API itself said ([schema.Message.Native]) is given back as it was, with what
// has changed since in its place. What the system says before anybody else goes where
// the API has a place for it. What it says later stands where it is said: in Chat
// Completions as a system message, elsewhere in a user message, framed so that no user
// can write the like. The Messages API and generateContent want user and
// model by turns, the user first and last: neighbours are merged, and where the beginning was
// dropped or the model spoke last, a user's line stands in.
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

// An api is how one vendor wants conversations.
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

// declared are tools as an API wants to be told of them.
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

// schemaOr is the schema of a tool's input where an API demands one.
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
