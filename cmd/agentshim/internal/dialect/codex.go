package dialect

import (
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// newCodex returns the dialect of the Codex CLI as of 0.169.0. Codex reads answers strictly: it
// ignores an answer with one unknown member or one unexpected value, and runs the tool.
func newCodex() claudelike {
	return claudelike{runtime: "codex", moments: codexMoments(), strict: true}
}

// codexLongest is 2,500 tokens as Codex counts them. Of longer texts it shows the model the
// beginning and the end.
const codexLongest = 10_000

func codexMoments() []Moment {
	all := []Moment{
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
		{Name: "SubagentStart"},
		{Name: "PreCompact"},
		{Name: "PostCompact"},
		{Name: "Interrupt", Timeout: time.Second},
	}
	for i := range all {
		all[i].Longest = codexLongest
		if all[i].Timeout == 0 {
			all[i].Timeout = 600 * time.Second
		}
	}
	return all
}
