package command

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// input is the standard input of a program: the event, and members under the names of
// Claude Code.
type input struct {
	HookEventName string `json:"hook_event_name"`
	workers.Input
	ToolResponse jsontext.Value `json:"tool_response,omitzero"`
}

// encode returns the standard input of a call about e. It is encoded for each hook, which
// costs a thousandth of starting a process. A cache would have to detect rewrites.
func encode(e *schema.Event) ([]byte, error) {
	in, err := workers.NewInput(e)
	var b []byte
	if err == nil {
		b, err = schema.Marshal(input{HookEventName: claudeName(e.HookType), Input: in, ToolResponse: e.ToolOutput})
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the event as JSON: %w", err)
	}
	return append(b, '\n'), nil
}

// claudeName returns Claude Code's name of t, or t's own name if it has none.
func claudeName(t schema.EventType) string {
	switch t {
	case schema.ToolError:
		return "PostToolUseFailure"
	case schema.BeforeFinalResponse:
		return "Stop"
	}
	return string(t)
}
