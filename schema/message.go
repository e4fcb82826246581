package schema

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// The roles of messages.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// A Message is one message of a conversation, independent of any model API. An agent loop, its
// hooks and its model client exchange messages in this form.
type Message struct {
	// Role is system, user, assistant or tool.
	Role string `json:"role"`
	// Content is the text.
	Content string `json:"content"`
	// ToolCalls are the calls that the model requests. Only assistant messages have them.
	ToolCalls []ToolCall `json:"tool_calls,omitzero"`
	// Result is the result of a call. Only tool messages have one, and they have no Content.
	Result *ToolOutcome `json:"tool_result,omitzero"`
	// Native is the message in the model API's own form. It keeps what has no place above, such
	// as signatures that the API requires back; absent: nothing more.
	Native jsontext.Value `json:"native,omitzero"`
}

// A ToolCall is a call that a model requests.
type ToolCall struct {
	// ID is the model's id of the call; empty for APIs without ids.
	ID string `json:"id,omitzero"`
	// Name is the tool's name.
	Name string `json:"name"`
	// Input is the JSON object of the arguments. It is a string if the model wrote no valid
	// object or was cut off; the loop does not make such a call.
	Input jsontext.Value `json:"input,omitzero"`
}

// A ToolOutcome is the result of a call, as the model reads it.
type ToolOutcome struct {
	// ID and Name are those of the [ToolCall].
	ID   string `json:"id,omitzero"`
	Name string `json:"name"`
	// Output is the tool's output; absent if Error replaces it.
	Output jsontext.Value `json:"output,omitzero"`
	// Error says why the call failed or was not made; empty: the call succeeded.
	Error string `json:"error,omitzero"`
	// Notes are texts of the fabric beside the result. They are not the tool's output.
	Notes []string `json:"notes,omitzero"`
}

// AssistantText returns an assistant message that contains only text.
func AssistantText(text string) Message { return Message{Role: RoleAssistant, Content: text} }

// ModelsMessage reports whether v can be a model's message: a string, or an object that does
// not claim another role.
func ModelsMessage(v jsontext.Value) bool {
	if v.Kind() != '{' {
		return v.Kind() == '"'
	}
	var fields struct {
		Role jsontext.Value `json:"role"`
	}
	var role string
	if Unmarshal(v, &fields) != nil || fields.Role.Kind() != '"' || Unmarshal(fields.Role, &role) != nil {
		return true
	}
	return role != RoleSystem && role != RoleUser && role != RoleTool
}

// ReadMessage reads a model's message from an event or a hook's value: a string, or a message
// as an object. It also understands the calls of a Chat Completions message. Any other object
// becomes Native as a whole, without text or calls, so that it is never mistaken for an empty
// message.
func ReadMessage(v jsontext.Value) (Message, error) {
	m := Message{Role: RoleAssistant}
	switch v.Kind() {
	case '"':
		if err := Unmarshal(v, &m.Content); err != nil {
			return m, sentence("the message", err)
		}
		return m, nil
	case '{':
		if Unmarshal(v, &m) != nil || !m.whole(v) {
			m = Message{Native: v.Clone()}
		}
		m.Role = cmp.Or(m.Role, RoleAssistant)
		return m, nil
	}
	return m, fmt.Errorf("the message is %s; it must be a string, or an object with its text in content", KindName(v.Kind()))
}
