package schema

import (
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

// A Message is one message of a conversation, in no API's shape. What an agent
// loop, its hooks and its model's API hand each other is this.
type Message struct {
	// Role is system, user, assistant or tool.
	Role string `json:"role"`
	// Content is the text.
	Content string `json:"content"`
	// ToolCalls are what the model wants to be called; only an assistant's message has some.
	ToolCalls []ToolCall `json:"tool_calls,omitzero"`
	// Result is what came of a call; only a tool's message has one, and no Content.
	Result *ToolOutcome `json:"tool_result,omitzero"`
	// Native is the message as the model's API gave it, for what has no place
	// above, such as signatures that the API wants back; absent: there is no more.
	Native jsontext.Value `json:"native,omitzero"`
}

// A ToolCall is a call that a model asks for.
type ToolCall struct {
	// ID is the model's; some have none.
	ID string `json:"id,omitzero"`
	// Name is the tool's.
	Name string `json:"name"`
	// Input is the JSON object that it is to be called with. A string is what the
	// model wrote where that is none, or was cut off: such a call is not made.
	Input jsontext.Value `json:"input,omitzero"`
}

// A ToolOutcome is what came of a call, as the model is told it.
type ToolOutcome struct {
	// ID and Name are those of the [ToolCall].
	ID   string `json:"id,omitzero"`
	Name string `json:"name"`
	// Output is what the tool returned; absent where Error stands for it.
	Output jsontext.Value `json:"output,omitzero"`
	// Error is why the call failed, or why it was not made; empty: it did not fail.
	Error string `json:"error,omitzero"`
	// Notes are what the fabric has to say beside the result: it is not the tool's.
	Notes []string `json:"notes,omitzero"`
}

// AssistantText is a model's message that is a text and nothing else.
func AssistantText(text string) Message { return Message{Role: RoleAssistant, Content: text} }

// ModelsMessage reports whether v can be what a model says: a text, or an object,
// of whatever shape, that does not say that it is somebody else's.
func ModelsMessage(v jsontext.Value) bool {
	if v.Kind() != '{' {
		return v.Kind() == '"'
	}
	var said struct {
		Role jsontext.Value `json:"role"`
	}
	var role string
	if Unmarshal(v, &said) != nil || said.Role.Kind() != '"' || Unmarshal(said.Role, &role) != nil {
		return true
	}
	return role != RoleSystem && role != RoleUser && role != RoleTool
}

// ReadMessage reads what stands for a model's message in an event or in a hook's
// value: a text, or a message as an object. Of Chat Completions' own message the
// calls are understood, too. Any other object of an API's or a runtime's own shape is
// Native as a whole, and says nothing else: nobody may take it for an empty message.
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
		if m.Role == "" {
			m.Role = RoleAssistant
		}
		return m, nil
	}
	return m, fmt.Errorf("the message is %s; it must be a string, or an object with its text in content", KindName(v.Kind()))
}
