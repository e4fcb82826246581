package schema

// A LoopStatus is what a hook's condition looks at: an event in the words of a
// program. Which fields an event has is in the contract of its type; the
// others are zero.
type LoopStatus struct {
	// Event is the moment, Agent whose it is.
	Event EventType `json:"event"`
	Agent string    `json:"agent,omitzero"`
	// Iteration counts the model calls of the query, from 1; 0 is unknown.
	Iteration int `json:"iteration,omitzero"`
	// ToolCall is the call to be made, at PreToolUse.
	ToolCall *ToolCall `json:"tool_call,omitzero"`
	// ToolResult is what came of one, at PostToolUse and ToolError.
	ToolResult *ToolOutcome `json:"tool_result,omitzero"`
	// AssistantMessage is the model's, at AfterLLMCall and BeforeFinalResponse.
	AssistantMessage *Message `json:"assistant_message,omitzero"`
	// Error is what went wrong, at ToolError.
	Error string `json:"error,omitzero"`
}

// LoopStatus is what conditions see of e. A message that can not be read is absent.
func (e *Event) LoopStatus() LoopStatus {
	s := LoopStatus{Event: e.HookType, Agent: e.AgentID, Iteration: e.Iteration}
	switch e.HookType {
	case PreToolUse:
		s.ToolCall = &ToolCall{ID: e.ToolUseID, Name: e.ToolName, Input: e.ToolInput}
	case PostToolUse, ToolError:
		s.ToolResult = &ToolOutcome{ID: e.ToolUseID, Name: e.ToolName, Output: e.ToolOutput, Error: e.Error}
		if e.HookType == ToolError {
			s.Error = e.Error
		}
	case AfterLLMCall, BeforeFinalResponse:
		if m, err := ReadMessage(e.Message); err == nil {
			s.AssistantMessage = &m
		}
	}
	return s
}
