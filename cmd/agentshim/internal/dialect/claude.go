package dialect

import (
	"maps"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// claude is Claude Code as of 2.1.332. Copilot runs the hooks of Claude's settings, too: see [inCopilot].
type claude struct{ claudelike }

// inCopilot is the form of a hook of Claude's settings that Copilot runs.
const inCopilot = "copilot"

const (
	// claudeLongest is the length above which Claude Code shows the model only the beginning of a text.
	claudeLongest  = 10_000
	codexLongest   = 10_000   // 2,500 tokens as Codex counts them; of longer texts it drops the middle
	copilotLongest = 10 << 10 // the length at which Copilot truncates a text after a tool
	qwenTurns      = 7        // one less than the limit at which Qwen Code ends the turn in any case
)

// claudeMoments returns the events of Claude Code. Those whose hooks can answer come first.
func claudeMoments() []Moment {
	tool := []Ability{Inject, Feedback}
	final := can([]Ability{Retry, Stop, Inject})
	return moments(600*time.Second, claudeLongest, []Moment{
		{Name: "PreToolUse", Event: schema.PreToolUse, Can: can([]Ability{Deny, Ask, Approve, Rewrite, Inject, Stop})},
		// An empty answer asks the person. Hooks can approve or deny only the input that the person sees.
		{Name: permissionRequest, Event: schema.PreToolUse, Can: can([]Ability{Deny, Ask, Approve, Stop}, Rewrite)},
		{Name: "PostToolUse", Event: schema.PostToolUse, Can: can(append(tool, Replace, Stop))},
		{Name: "PostToolUseFailure", Event: schema.ToolError, Can: can(tool)},
		{Name: "UserPromptSubmit", Event: schema.UserPromptSubmit, Can: can([]Ability{Deny, Inject, Stop}), Timeout: 30 * time.Second},
		{Name: "SessionStart", Event: schema.SessionStart, Can: can([]Ability{Inject})},
		{Name: "SessionEnd", Event: schema.SessionEnd, Timeout: 1500 * time.Millisecond},
		{Name: "Stop", Event: schema.BeforeFinalResponse, Turns: mostTurns, Can: final},
		{Name: "SubagentStop", Event: schema.BeforeFinalResponse, Turns: mostTurns, Can: maps.Clone(final)},
		{Name: "PreModelSwitch", Timeout: 30 * time.Second},
		{Name: "PostModelSwitch", Timeout: 30 * time.Second},
		{Name: "MessageDisplay", Timeout: 10 * time.Second},
	}, "PostToolBatch", "Notification", "UserPromptExpansion", "StopFailure", "SubagentStart", "PreCompact",
		"PostCompact", "PermissionDenied", "Setup", "TeammateIdle", "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult",
		"ConfigChange", "WorktreeCreate", "WorktreeRemove", "InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded")
}

// codexMoments returns the events of the Codex CLI as of 0.169.0. It ignores an answer with one unknown member
// or one unexpected value, and runs the tool.
func codexMoments() []Moment {
	return moments(600*time.Second, codexLongest, []Moment{
		// A bare allow is invalid here. It is valid where Codex asks a person.
		{Name: "PreToolUse", Event: schema.PreToolUse, Can: can([]Ability{Deny, Rewrite, Inject}, Approve)},
		{Name: permissionRequest, Event: schema.PreToolUse, Can: can([]Ability{Deny, Ask, Approve}, Rewrite)},
		// The reason of a block or a stop replaces the output, and the run goes on.
		{Name: "PostToolUse", Event: schema.PostToolUse, Can: can([]Ability{Inject, Feedback}, Replace, Stop)},
		{Name: "UserPromptSubmit", Event: schema.UserPromptSubmit, Can: can([]Ability{Deny, Inject})},
		{Name: "SessionStart", Event: schema.SessionStart, Can: can([]Ability{Inject, Stop})},
		{Name: "SessionEnd", Event: schema.SessionEnd, Timeout: time.Second},
		{Name: "Stop", Event: schema.BeforeFinalResponse, Endless: true, Can: can([]Ability{Retry, Inject, Stop})},
		{Name: "SubagentStop", Event: schema.BeforeFinalResponse, Endless: true, Can: can([]Ability{Retry, Inject, Stop})},
		{Name: "PreModelRequest", Event: schema.BeforeLLMCall},
		{Name: "PostModelRequest", Event: schema.AfterLLMCall},
		{Name: "Interrupt", Timeout: time.Second},
	}, "SubagentStart", "PreCompact", "PostCompact")
}

// qwenMoments returns the events of Qwen Code as of 0.24.4. Before a tool it ignores rewrites and context.
// After a tool, a block has no effect, and a stop replaces the output.
func qwenMoments() []Moment {
	return moments(60*time.Second, 0, []Moment{
		{Name: "PreToolUse", Event: schema.PreToolUse, Can: can([]Ability{Deny, Ask, Approve}, Inject)},
		{Name: permissionRequest, Event: schema.PreToolUse, Can: can([]Ability{Deny, Ask, Approve, Stop}, Rewrite)},
		{Name: "PostToolUse", Event: schema.PostToolUse, Can: can([]Ability{Inject}, Feedback, Replace)},
		{Name: "PostToolUseFailure", Event: schema.ToolError, Can: can([]Ability{Inject}, Feedback)},
		{Name: "UserPromptSubmit", Event: schema.UserPromptSubmit, Can: can([]Ability{Deny, Inject})},
		{Name: "SessionStart", Event: schema.SessionStart, Can: can([]Ability{Inject})},
		{Name: "SessionEnd", Event: schema.SessionEnd},
		{Name: "Stop", Event: schema.BeforeFinalResponse, Endless: true, Turns: qwenTurns, Can: can([]Ability{Retry, Inject})},
		{Name: "SubagentStop", Event: schema.BeforeFinalResponse, Endless: true, Turns: qwenTurns, Can: can([]Ability{Retry, Inject})},
	}, "PostToolBatch", "Notification", "UserPromptExpansion", "MessageDisplay", "SubagentStart", "PreCompact", "PostCompact",
		"SessionDelete", "PermissionDenied", "StopFailure", "TodoCreated", "TodoCompleted", "InstructionsLoaded")
}

// Decode reads the payload of Claude Code, or the one that Copilot sends to a hook of Claude's settings:
// Claude's members without ids, or Copilot's own at PermissionRequest.
func (d claude) Decode(in Input) (*Call, error) {
	if in.env("COPILOT_CLI") != "1" {
		return d.claudelike.Decode(in)
	}
	c, p, err := d.read(in)
	if c.Payload != nil && p.fromCopilot() { // else Claude Code itself, run by Copilot's shell
		c.Form, c.Event.Runtime = inCopilot, "copilot"
		if word(p.HookName) == "permissionRequest" {
			p.Event, p.Session, p.Tool, p.Input = permissionRequest, word(p.Camel), word(p.CamelTool), p.CamelInput
			p.HookName, p.Camel = nil, nil
		}
		err = c.settle(d, in, p.Event)
		if err == nil && p.Event == "" {
			err = unnamed(d.runtime, "hook_event_name")
		}
		err = d.foreign(p, err)
		c.Moment = copilotCan(c.Moment)
	}
	if err == nil && c.Moment.Event != "" {
		err = d.fill(c, p)
	}
	return c, err
}

// fromCopilot reports whether Copilot sent the payload: Claude Code has no such members.
func (p *payload) fromCopilot() bool {
	return len(p.Camel) > 0 || len(p.HookName) > 0 || len(p.Timestamp) > 0 && len(p.PromptID) == 0
}

// copilotCan returns the moment with the abilities that Copilot supports for a hook of Claude's settings.
func copilotCan(m Moment) Moment {
	m.Longest, m.Timeout = copilotLongest, 30*time.Second
	switch m.Name {
	case "PreToolUse":
		m.Can = can([]Ability{Deny, Ask, Approve, Rewrite, Inject})
	case "PostToolUse":
		m.Can = can([]Ability{Inject, Feedback, Replace})
	case "PostToolUseFailure":
		m.Can = can([]Ability{Inject, Feedback})
	case "UserPromptSubmit":
		m.Can = can([]Ability{Deny, Inject})
	case "Stop", "SubagentStop":
		m.Can = can([]Ability{Retry, Inject})
	}
	return m
}
