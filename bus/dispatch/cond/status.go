package cond

import (
	"github.com/hookfabric/hookfabric/schema"
)

// These functions derive the fields of [schema.LoopStatus] from the event. If the event
// has no such part, the field is null; otherwise every member is present, so that a
// condition need not test for it.

// toolCall returns the call to be made.
func toolCall(f *facts, e *schema.Event) (any, error) {
	if e.HookType != schema.PreToolUse {
		return nil, nil
	}
	input := f.json("tool_input", e.ToolInput, true)
	if err, ok := input.(error); ok {
		return nil, err
	}
	return call(e.ToolUseID, e.ToolName, input), nil
}

// toolResult returns the result of a call.
func toolResult(f *facts, e *schema.Event) (any, error) {
	if e.HookType != schema.PostToolUse && e.HookType != schema.ToolError {
		return nil, nil
	}
	output := f.json("tool_output", e.ToolOutput, false)
	if err, ok := output.(error); ok {
		return nil, err
	}
	return map[string]any{"id": e.ToolUseID, "name": e.ToolName, "output": output, "error": e.Error}, nil
}

// assistantMessage returns the model's message in one form for all runtimes. A message
// that cannot be read is null.
func assistantMessage(_ *facts, e *schema.Event) (any, error) {
	if e.HookType != schema.AfterLLMCall && e.HookType != schema.BeforeFinalResponse {
		return nil, nil
	}
	m, err := schema.ReadMessage(e.Message)
	if err != nil {
		return nil, nil //nolint:nilerr // the event has no message, which is no fault of the condition
	}
	calls := make([]any, 0, len(m.ToolCalls))
	left := maxValues
	for _, c := range m.ToolCalls {
		var input any
		if input, left, err = decodeWithin(c.Input, left); err != nil {
			return nil, err
		}
		calls = append(calls, call(c.ID, c.Name, input))
	}
	return map[string]any{"role": m.Role, "content": m.Content, "tool_calls": calls}, nil
}

// call returns a tool's call, with an empty input if it has none.
func call(id, name string, input any) map[string]any {
	if input == nil {
		input = map[string]any{}
	}
	return map[string]any{"id": id, "name": name, "input": input}
}
