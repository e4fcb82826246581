package dialect

import (
	"maps"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// claude is Claude Code, and the Claude Agent SDK, as of 2.1.332. Copilot runs
// the hooks of Claude's settings, too, with payloads of its own: see [inCopilot].
type claude struct{ claudelike }

// inCopilot is the form of a hook of Claude's settings that Copilot runs.
const inCopilot = "copilot"

// claudeLongest is the limit above which Claude Code moves a text into a file and shows the model
// only its beginning.
const claudeLongest = 10_000

func newClaude() claude {
	return claude{claudelike{runtime: "claude", moments: claudeMoments()}}
}

// Decode reads the payload of Claude Code, or of Copilot with Claude's settings.
func (d claude) Decode(in Input) (*Call, error) {
	if in.Env == nil || in.Env("COPILOT_CLI") != "1" {
		return d.claudelike.Decode(in)
	}
	return d.fromCopilot(in)
}

// can returns a table of abilities.
func can(native []Ability, emulated ...Ability) map[Ability]How {
	all := make(map[Ability]How, len(native)+len(emulated))
	for _, a := range native {
		all[a] = Native
	}
	for _, a := range emulated {
		all[a] = Emulated
	}
	return all
}

// claudeMoments returns the events of Claude Code. Those whose hooks can answer come first.
func claudeMoments() []Moment {
	const usual = 600 * time.Second
	tool := []Ability{Inject, Feedback}
	final := can([]Ability{Retry, Stop, Inject})
	all := []Moment{
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
	}
	for _, name := range []string{"PostToolBatch", "Notification", "UserPromptExpansion", "StopFailure", "SubagentStart", "PreCompact",
		"PostCompact", "PermissionDenied", "Setup", "TeammateIdle", "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult",
		"ConfigChange", "WorktreeCreate", "WorktreeRemove", "InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded"} {
		all = append(all, Moment{Name: name})
	}
	for i := range all {
		all[i].Longest = claudeLongest
		if all[i].Timeout == 0 {
			all[i].Timeout = usual
		}
	}
	return all
}

// fromCopilot reads the payload that Copilot sends to a hook of Claude's settings: Claude's members
// without ids. At PermissionRequest, the members are Copilot's own.
func (d claude) fromCopilot(in Input) (*Call, error) {
	c, p, err := d.read(in)
	if p == nil || !p.fromCopilot() {
		if err == nil && c.Moment.Event != "" {
			err = d.fill(c, p)
		}
		return c, err // Claude Code itself, run by Copilot's shell
	}
	c.Form, c.Event.Runtime = inCopilot, "copilot"
	c.Moment = copilotCan(c.Moment)
	p.straighten()
	named, known := d.named(p.Event)
	if in.Moment.Name == "" && known {
		c.Moment, c.Event.HookType = copilotCan(named), named.Event
	}
	if err = d.disagrees(in.Moment, p, known); err == nil && c.Moment.Event != "" {
		err = d.fill(c, p)
	}
	return c, err
}

// fromCopilot reports whether Copilot sent the payload: Claude Code sends no timestamp and has no
// such members.
func (p *payload) fromCopilot() bool {
	return len(p.Camel) > 0 || len(p.HookName) > 0 || len(p.Timestamp) > 0 && len(p.PromptID) == 0
}

// straighten copies Copilot's members to Claude's.
func (p *payload) straighten() {
	if word(p.HookName) == "permissionRequest" {
		p.Event, p.Session, p.Tool, p.Input = permissionRequest, word(p.Camel), word(p.CamelTool), p.CamelInput
		p.HookName, p.Camel = nil, nil
	}
}

// copilotCan returns the moment with the abilities that Copilot supports for a hook of Claude's
// settings.
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

// copilotLongest is the length at which Copilot truncates a text after a tool.
const copilotLongest = 10 << 10
