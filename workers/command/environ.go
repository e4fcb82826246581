package command

import (
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers/internal/child"
)

// environ is the part of a program's environment that is equal for all calls: name=value
// pairs of the worker.
type environ []string

// newEnviron selects variables from the worker's environment, without those that the
// event decides.
func newEnviron(all, names []string) (environ, error) {
	env, err := child.Environ(all, names)
	return slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return isFact(name)
	}), err
}

// isFact reports whether the event decides the value of name.
func isFact(name string) bool {
	return slices.ContainsFunc(facts(new(schema.Event)), func(f fact) bool { return f.name == name }) ||
		slices.Contains([]string{projectDir, traceParent, traceState}, name)
}

const (
	// projectDir is where scripts for Claude Code read the agent's folder.
	projectDir = "CLAUDE_PROJECT_DIR"
	// traceParent and traceState are OpenTelemetry's variables for a position in a trace.
	traceParent = "TRACEPARENT"
	traceState  = "TRACESTATE"
)

// fact is a variable that comes from the event or its trace.
type fact struct{ name, value string }

func facts(e *schema.Event) []fact {
	return []fact{
		{"HOOK_TYPE", string(e.HookType)},
		{"HOOK_HOOK_TYPE", string(e.HookType)},
		{"MASSGEN_HOOK_TYPE", string(e.HookType)},
		{"HOOK_TOOL_NAME", e.ToolName},
		{"MASSGEN_TOOL_NAME", e.ToolName},
		{"HOOK_SESSION_ID", e.SessionID},
		{"MASSGEN_SESSION_ID", e.SessionID},
		{"HOOK_AGENT_ID", e.AgentID},
		{"MASSGEN_AGENT_ID", e.AgentID},
		{"HOOK_ORCHESTRATOR_ID", e.OrchestratorID},
		{"MASSGEN_ORCHESTRATOR_ID", e.OrchestratorID},
	}
}

// of returns the whole environment of a call about e, at a position in a trace; nil: not
// traced.
func (v environ) of(e *schema.Event, c *trace.Context) []string {
	fs := facts(e)
	if e.Cwd != "" {
		fs = append(fs, fact{projectDir, e.Cwd})
	}
	if c != nil {
		fs = append(fs, fact{traceParent, c.Parent()})
		if c.State != "" {
			fs = append(fs, fact{traceState, c.State})
		}
	}
	env := make([]string, len(v), len(v)+len(fs))
	copy(env, v)
	for _, f := range fs {
		env = append(env, f.name+"="+fit(f.value))
	}
	return env
}

// fit makes s a valid value of a variable. A NUL byte is replaced and not removed, so
// that no name turns into that of another tool.
func fit(s string) string {
	if len(s) > schema.MaxHeader {
		s = strings.ToValidUTF8(s[:schema.MaxHeader], "")
	}
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}
