// Package runnertest has the tests that every runner must pass.
//
// The test of a runner fills a [Suite] with hooks that do what the fields' comments
// describe, and calls [Run]. The tests do not wait longer than necessary: handlers report
// through a [Lifeline], which ends when the last process that holds it has ended.
package runnertest

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// Reason is the reason of the hook Refuses.
const Reason = "not on my watch"

// NewInput is the rewrite of the hook Rewrites.
const NewInput = `{"command":"true"}`

// A Suite is a runner and hooks for it, all for the event of [Event]. A hook without a
// handler is unsupported by the kind, and its checks are skipped.
type Suite struct {
	// New makes a runner; the suite closes it.
	New func(t *testing.T) workers.Runner
	// Dirs are the folders of the handlers.
	Dirs []string
	// Answers allows, without other members.
	Answers schema.Hook
	// Refuses denies with Reason.
	Refuses schema.Hook
	// Rewrites replaces the tool's input with NewInput.
	Rewrites schema.Hook
	// Echoes injects the name of the event's tool as a user_message.
	Echoes schema.Hook
	// Crashes ends in the worst possible way, without an answer.
	Crashes schema.Hook
	// Floods answers with more than schema.MaxResult, or endlessly.
	Floods schema.Hook
	// Junk answers with something that is not an answer.
	Junk schema.Hook
	// Unknown answers with an object of unknown members, with at most a reason beside
	// them.
	Unknown schema.Hook
	// Missing names a handler that does not exist.
	Missing schema.Hook
	// Hangs returns a hook that holds l and never answers; every process that it starts
	// holds l too. nil: the kind cannot hang.
	Hangs func(t *testing.T, l *Lifeline) schema.Hook
}

// Event returns the event for the hooks: a call of a tool.
func Event(tool string) *schema.Event {
	return &schema.Event{
		HookType: schema.PreToolUse, EventID: "01980000-0000-7000-8000-000000000001",
		SessionID: "session-1", AgentID: "agent-1", OrchestratorID: "orchestrator-1",
		ToolName: tool, ToolInput: jsontext.Value(`{"command":"rm -rf /tmp/x"}`), Cwd: "/home/dev/project",
	}
}

// Run checks the runner of s.
func Run(t *testing.T, s Suite) {
	t.Run("it answers", s.answers)
	t.Run("a hook whose handler is missing cannot be loaded, and the error names it", s.missing)
	t.Run("a call whose time is over is not started", s.late)
	t.Run("calls side by side get each their own answer", s.parallel)
	t.Run("a handler without an answer is an error and harms no other call", s.failing)
	if s.Hangs != nil {
		t.Run("a handler that hangs is killed at its deadline", s.deadline)
		t.Run("a handler that hangs delays no other call and ends when its call is cancelled", s.cancelled)
		t.Run("close ends a handler that hangs", s.closing)
	}
	t.Run("close can be called again", s.closedTwice)
	t.Run("nothing is left behind", s.leaves)
}
