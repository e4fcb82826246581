package schema

// A LoopStatus is the view of an event that a hook's condition reads. The contract of the
// event's type lists the fields that it sets; the others are zero.
type LoopStatus struct {
	// Event is the moment. Agent is the agent of the event.
	Event EventType `json:"event"`
	Agent string    `json:"agent,omitzero"`
	// Iteration counts the model calls of the query, from 1; 0: unknown.
	Iteration int `json:"iteration,omitzero"`
	// ToolCall is the call about to run, at PreToolUse.
	ToolCall *ToolCall `json:"tool_call,omitzero"`
	// ToolResult is the call's result, at PostToolUse and ToolError.
	ToolResult *ToolOutcome `json:"tool_result,omitzero"`
	// AssistantMessage is the model's message, at AfterLLMCall and BeforeFinalResponse.
	AssistantMessage *Message `json:"assistant_message,omitzero"`
	// Error is the tool's error, at ToolError.
	Error string `json:"error,omitzero"`
}

// LoopStatus returns the view of e that conditions read. It omits an unreadable message.
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
