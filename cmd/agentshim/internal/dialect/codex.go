package dialect

import (
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// newCodex is the Codex CLI as of 0.169.0. It reads answers strictly: one member
// that it does not know, or one word that it does not want there, and the tool
// runs as if nobody had said anything.
func newCodex() claudelike {
	return claudelike{runtime: "codex", moments: codexMoments(), strict: true}
}

// codexLongest are 2,500 tokens as Codex counts them. Of longer texts it shows
// the model how they begin and how they end.
const codexLongest = 10_000

func codexMoments() []Moment {
	all := []Moment{
		// An allow by itself is no answer here; where Codex asks a person, it is one.
		{Name: "PreToolUse", Event: schema.PreToolUse, Can: can([]Ability{Deny, Rewrite, Inject}, Approve)},
		{Name: permissionRequest, Event: schema.PreToolUse, Can: can([]Ability{Deny, Ask, Approve}, Rewrite)},
		// A block's reason takes the place of the output, and so does that of a stop:
		// the run goes on.
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
