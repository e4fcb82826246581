package workers

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// Input is an event in the form that hooks in other processes read. The members of
// MassGen's HookEvent are always present, so that a script can read them without a check.
// If the event has no value for one, it is an empty string, an empty tool_input, or null
// for timestamp and tool_output.
type Input struct {
	SessionID      string         `json:"session_id"`
	OrchestratorID string         `json:"orchestrator_id"`
	Timestamp      jsontext.Value `json:"timestamp"`
	ToolName       string         `json:"tool_name"`
	ToolInput      jsontext.Value `json:"tool_input"`
	ToolOutput     jsontext.Value `json:"tool_output"`
	*schema.Event
}

// NewInput returns e as the Input of a hook.
func NewInput(e *schema.Event) (Input, error) {
	in := Input{
		SessionID: e.SessionID, OrchestratorID: e.OrchestratorID, ToolName: e.ToolName, Event: e,
		ToolInput: e.ToolInput, ToolOutput: e.ToolOutput, Timestamp: jsontext.Value("null"),
	}
	if len(in.ToolInput) == 0 {
		in.ToolInput = jsontext.Value("{}")
	}
	if len(in.ToolOutput) == 0 {
		in.ToolOutput = jsontext.Value("null")
	}
	if e.Timestamp.IsZero() {
		return in, nil
	}
	at, err := schema.Marshal(e.Timestamp)
	in.Timestamp = at
	return in, err
}
