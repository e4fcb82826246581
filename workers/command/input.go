package command

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// input is what a program reads: the event, and what scripts that were written
// for Claude Code look for under other names.
type input struct {
	HookEventName string `json:"hook_event_name"`
	workers.Input
	ToolResponse jsontext.Value `json:"tool_response,omitzero"`
}

// encode is the standard input of a call about e. It is made for each hook
// anew: that costs a thousandth of starting a process, and a cache would have
// to know when a rewrite makes it stale.
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

// claudeName is what Claude Code calls t, and t's own name where it has none.
func claudeName(t schema.EventType) string {
	switch t {
	case schema.ToolError:
		return "PostToolUseFailure"
	case schema.BeforeFinalResponse:
		return "Stop"
	}
	return string(t)
}
