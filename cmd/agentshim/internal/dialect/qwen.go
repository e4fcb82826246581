package dialect

import (
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// newQwen returns the dialect of Qwen Code as of 0.24.4. It has Claude Code's protocol and obeys less
// of it. Before a tool it ignores rewrites and context. After a tool, a block has no effect, and
// a stop replaces the output. At the end of a turn, a stop of the run makes the agent continue.
func newQwen() claudelike {
	return claudelike{runtime: "qwen", moments: qwenMoments()}
}

// qwenTurns is one less than the limit of Qwen Code, which ends the turn in any case when it reaches
// the limit.
const qwenTurns = 7

func qwenMoments() []Moment {
	all := []Moment{
		{Name: "PreToolUse", Event: schema.PreToolUse, Can: can([]Ability{Deny, Ask, Approve}, Inject)},
		{Name: permissionRequest, Event: schema.PreToolUse, Can: can([]Ability{Deny, Ask, Approve, Stop}, Rewrite)},
		{Name: "PostToolUse", Event: schema.PostToolUse, Can: can([]Ability{Inject}, Feedback, Replace)},
		{Name: "PostToolUseFailure", Event: schema.ToolError, Can: can([]Ability{Inject}, Feedback)},
		{Name: "UserPromptSubmit", Event: schema.UserPromptSubmit, Can: can([]Ability{Deny, Inject})},
		{Name: "SessionStart", Event: schema.SessionStart, Can: can([]Ability{Inject})},
		{Name: "SessionEnd", Event: schema.SessionEnd},
		{Name: "Stop", Event: schema.BeforeFinalResponse, Endless: true, Turns: qwenTurns, Can: can([]Ability{Retry, Inject})},
		{Name: "SubagentStop", Event: schema.BeforeFinalResponse, Endless: true, Turns: qwenTurns, Can: can([]Ability{Retry, Inject})},
	}
	for _, name := range []string{"PostToolBatch", "Notification", "UserPromptExpansion", "MessageDisplay", "SubagentStart", "PreCompact",
		"PostCompact", "SessionDelete", "PermissionDenied", "StopFailure", "TodoCreated", "TodoCompleted", "InstructionsLoaded"} {
		all = append(all, Moment{Name: name})
	}
	for i := range all {
		all[i].Timeout = 60 * time.Second
	}
	return all
}
