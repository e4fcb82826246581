package render

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

type openAICall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// openAIAssistant is a message of the model. Its content is null if it has only calls.
type openAIAssistant struct {
	Role    string       `json:"role"`
	Content *string      `json:"content"`
	Calls   []openAICall `json:"tool_calls,omitzero"`
}

type openAITool struct {
	Type     string         `json:"type"`
	Function openAIFunction `json:"function"`
}

type openAIFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitzero"`
	Parameters  jsontext.Value `json:"parameters"`
}

func openAITools(tools []Tool) []any {
	all := make([]any, 0, len(tools))
	for _, t := range tools {
		all = append(all, openAITool{"function", openAIFunction{t.Name, t.Description, t.schemaOr()}})
	}
	return all
}

func openAIConversation(f Format, steps []step, r *Request) (err error) {
	identify(steps, func(id string) bool { return id != "" })
	if explain := SystemPrompt(f); explain != "" {
		steps = explained(steps, explain)
	}
	var all []any
	for i := range steps {
		if all, err = openAIStep(all, f, &steps[i]); err != nil {
			return err
		}
	}
	if len(all) == 0 || !slices.ContainsFunc(steps, func(s step) bool { return s.role != schema.RoleSystem }) {
		return errNoMessage
	}
	r.Messages, err = encoded(all)
	return err
}

// explained adds the explanation of the format to the first system message.
func explained(steps []step, text string) []step {
	if len(steps) > 0 && steps[0].role == schema.RoleSystem && !blank(steps[0].text) {
		steps[0].text += "\n\n" + text
		return steps
	}
	return slices.Insert(steps, 0, step{role: schema.RoleSystem, text: text})
}

func openAIStep(all []any, f Format, s *step) ([]any, error) {
	switch s.role {
	case schema.RoleAssistant:
		if m := openAIAssistantOf(s); m != nil {
			all = append(all, m)
		}
		write := openAI
		if f == OpenAIStructured {
			write = openAIStructured
		}
		written, err := write(s.results)
		return append(all, written...), err
	case schema.RoleUser:
		if members, a := openAINative(s); members != nil && (s.text == "" || s.text == a.text()) {
			return append(all, members), nil
		}
		if s.text == "" && len(s.native) > 0 {
			return nil, s.errForeign()
		}
	}
	if !blank(s.text) {
		all = append(all, openAIMessage{Role: s.role, Content: s.text})
	}
	return all, nil
}

// openAIAssistantOf returns the message of the model; nil: it is empty.
func openAIAssistantOf(s *step) any {
	members, a := openAINative(s)
	text := s.text
	if text == "" && len(s.calls) == 0 {
		text = a.text() // the text was not compared
	}
	if blank(text) && len(s.calls) == 0 {
		return nil
	}
	written := openAIAssistant{Role: s.role}
	if !blank(text) {
		written.Content = &text
	}
	for i := range s.calls {
		written.Calls = append(written.Calls, openAICallOf(&s.calls[i]))
	}
	if members == nil {
		return written
	}
	if text != a.text() {
		delete(members, "refusal")
		members["content"], _ = schema.Marshal(written.Content) // a string, which cannot fail
	}
	if !a.sameCalls(s.calls) {
		delete(members, "tool_calls")
		if len(written.Calls) > 0 {
			members["tool_calls"], _ = schema.Marshal(written.Calls) // strings, which cannot fail
		}
	}
	return members
}

func openAICallOf(c *schema.ToolCall) openAICall {
	call := openAICall{ID: c.ID, Type: "function"}
	call.Function.Name, call.Function.Arguments = c.Name, "{}"
	if s := textOf(c.Input); s != nil {
		call.Function.Arguments = *s
	} else if len(c.Input) > 0 {
		call.Function.Arguments = string(c.Input)
	}
	return call
}
