package install

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
)

// A runtime describes the hooks configuration of one agent runtime.
type runtime struct {
	name, label string
	// binary is the program whose presence shows that the runtime is installed.
	binary string
	places map[Scope]place
	events []event
	// below is the path of the object with the events, and sets are settings beside it.
	below []string
	sets  map[Scope][]setting
	entry func(r *Request, e event) any // returns an entry of an event's list
	// http is the first version that can ask the daemon itself and refuses a call if that fails.
	http   probe.Version
	syntax edit.Syntax // the set of extensions of JSON that its releases accept
	// open: the runtime lets a call pass if a hook cannot start, and has no setting against that.
	open   bool
	plugin bool // agentshim installs a plugin of the runtime instead of hooks
}

// A setting is a member that an installation needs beside its hooks.
type setting struct {
	path  []string
	value jsontext.Value
	keep  bool // the value of another program stays
}

// An event is an event of the runtime with a hook of agentshim.
type event struct {
	name string
	tool bool   // the event is about one tool call, so a matcher applies
	gate bool   // a shim that fails must not let the event pass
	only string // the condition for the hook; empty: it is always installed
	// most is the limit on how long the runtime waits; 0: the hook's timeout is the limit.
	most time.Duration
}

// The conditions for hooks that are not always installed.
const (
	onlyApprove = "approve"
	onlyModels  = "models"
)

// runtimes returns all runtimes; add yours here.
func runtimes() map[string]*runtime {
	all := map[string]*runtime{}
	for _, t := range []*runtime{claude(), codex(), gemini(), qwen(), cursor(), copilot(), agy(), opencode()} {
		all[t.name] = t
	}
	return all
}

// Names lists the runtimes that agentshim can be installed in.
func Names() []string { return slices.Sorted(maps.Keys(runtimes())) }

func (r *Request) target() (*runtime, error) {
	t, ok := runtimes()[r.Runtime]
	if !ok {
		return nil, fmt.Errorf("unknown runtime %q; write one of %s", r.Runtime, strings.Join(Names(), ", "))
	}
	if _, ok := t.places[r.Scope]; !ok {
		return nil, fmt.Errorf("%s has no %s configuration; install with --user for each account, and watch for silent hosts", t.label, r.Scope)
	}
	return t, nil
}

func (t *runtime) wanted(r *Request) (all []event) {
	for _, e := range t.events {
		if e.only == "" || e.only == onlyApprove && r.Hook.Approve || e.only == onlyModels && r.Hook.Models {
			all = append(all, e)
		}
	}
	return all
}

func claude() *runtime {
	return &runtime{
		name: "claude", label: "Claude Code", binary: "claude", below: []string{"hooks"}, entry: claudeEntry, http: Blocking(), syntax: edit.Mark,
		places: map[Scope]place{
			User:    {anchor: home, path: ".claude/settings.json", env: "CLAUDE_CONFIG_DIR", below: "settings.json"},
			Project: {anchor: folder, path: ".claude/settings.json"},
			Managed: {path: "/etc/claude-code/managed-settings.d/50-agentshim.json",
				darwin: "/Library/Application Support/ClaudeCode/managed-settings.d/50-agentshim.json"},
		},
		sets: map[Scope][]setting{Managed: {{path: []string{managedOnlyJSON}, value: jsontext.Value("true")}}},
		events: []event{{name: "SessionStart"}, {name: "UserPromptSubmit", gate: true}, {name: "PreToolUse", tool: true, gate: true},
			{name: "PermissionRequest", tool: true, gate: true, only: onlyApprove}, {name: "PostToolUse", tool: true},
			{name: "PostToolUseFailure", tool: true}, {name: "Stop"}, {name: "SubagentStop"}, {name: "SessionEnd", most: 10 * time.Second}},
	}
}

func codex() *runtime {
	return &runtime{
		name: "codex", label: "Codex", binary: "codex", below: []string{"hooks"}, entry: codexEntry, open: true,
		places: map[Scope]place{
			User:    {anchor: home, path: ".codex/hooks.json", env: "CODEX_HOME", below: "hooks.json"},
			Project: {anchor: folder, path: ".codex/hooks.json", reach: upward},
			Managed: {path: "/etc/codex/requirements.toml", toml: true},
		},
		events: []event{{name: "SessionStart"}, {name: "UserPromptSubmit", gate: true}, {name: "PreToolUse", tool: true, gate: true},
			{name: "PermissionRequest", tool: true, gate: true, only: onlyApprove}, {name: "PostToolUse", tool: true},
			{name: "PreModelRequest", only: onlyModels}, {name: "PostModelRequest", only: onlyModels},
			{name: "Stop"}, {name: "SubagentStop"}, {name: "SessionEnd", most: 3 * time.Second}},
	}
}

func gemini() *runtime {
	return &runtime{
		name: "gemini", label: "Gemini CLI", binary: "gemini", below: []string{"hooks"}, entry: geminiEntry, syntax: edit.Comments,
		places: map[Scope]place{
			User:    {anchor: home, path: ".gemini/settings.json"},
			Project: {anchor: folder, path: ".gemini/settings.json"},
			Managed: {path: "/etc/gemini-cli/settings.json", darwin: "/Library/Application Support/GeminiCli/settings.json"},
		},
		sets: map[Scope][]setting{Managed: {{path: []string{"hooksConfig", "enabled"}, value: jsontext.Value("true")}}},
		events: []event{{name: "SessionStart"}, {name: "BeforeAgent", gate: true}, {name: "BeforeModel", only: onlyModels},
			{name: "AfterModel", only: onlyModels}, {name: "BeforeTool", tool: true, gate: true}, {name: "AfterTool", tool: true},
			{name: "AfterAgent"}, {name: "SessionEnd"}},
	}
}

func qwen() *runtime {
	return &runtime{
		name: "qwen", label: "Qwen Code", binary: "qwen", below: []string{"hooks"}, entry: qwenEntry, open: true, syntax: edit.Comments | edit.Mark,
		places: map[Scope]place{
			User:    {anchor: home, path: ".qwen/settings.json"},
			Project: {anchor: folder, path: ".qwen/settings.json"},
		},
		events: []event{{name: "SessionStart"}, {name: "UserPromptSubmit", gate: true}, {name: "PreToolUse", tool: true, gate: true},
			{name: "PostToolUse", tool: true}, {name: "PostToolUseFailure", tool: true}, {name: "Stop"}, {name: "SubagentStop"}, {name: "SessionEnd"}},
	}
}

func cursor() *runtime {
	one := []setting{{path: []string{"version"}, value: jsontext.Value("1"), keep: true}}
	return &runtime{
		name: "cursor", label: "Cursor", binary: "cursor-agent", below: []string{"hooks"}, entry: cursorEntry,
		places: map[Scope]place{
			User:    {anchor: home, path: ".cursor/hooks.json"},
			Project: {anchor: folder, path: ".cursor/hooks.json"},
			Managed: {path: "/etc/cursor/hooks.json", darwin: "/Library/Application Support/Cursor/hooks.json"},
		},
		sets: map[Scope][]setting{User: one, Project: one, Managed: one},
		events: []event{{name: "sessionStart"}, {name: "beforeSubmitPrompt", gate: true}, {name: "preToolUse", gate: true},
			{name: "postToolUse"}, {name: "postToolUseFailure"}, {name: "stop"}, {name: "subagentStop"}, {name: "sessionEnd"}},
	}
}

func copilot() *runtime {
	one := []setting{{path: []string{"version"}, value: jsontext.Value("1"), keep: true}}
	return &runtime{
		name: "copilot", label: "GitHub Copilot", binary: "copilot", below: []string{"hooks"}, entry: copilotEntry,
		places: map[Scope]place{
			User:    {anchor: home, path: ".copilot/hooks/agentshim.json", env: "COPILOT_HOME", below: "hooks/agentshim.json"},
			Project: {anchor: folder, path: ".github/hooks/agentshim.json", reach: rootOnly},
			Managed: {path: "/etc/github-copilot/policy.d/50-agentshim.json"},
		},
		sets: map[Scope][]setting{User: one, Project: one, Managed: one},
		events: []event{{name: "sessionStart"}, {name: "userPromptSubmitted"}, {name: "preToolUse", gate: true},
			{name: "permissionRequest", gate: true, only: onlyApprove}, {name: "postToolUse"}, {name: "postToolUseFailure"},
			{name: "agentStop"}, {name: "subagentStop"}, {name: "sessionEnd"}},
	}
}

func agy() *runtime {
	return &runtime{
		name: "agy", label: "Antigravity CLI", binary: "agy", below: []string{"agentshim"}, entry: agyEntry,
		places: map[Scope]place{
			User:    {anchor: home, path: ".gemini/config/hooks.json"},
			Project: {anchor: folder, path: ".agents/hooks.json"},
		},
		events: []event{{name: "PreToolUse", tool: true, gate: true}, {name: "PostToolUse", tool: true}, {name: "PreInvocation"}, {name: "Stop"}},
	}
}

// of returns a runtime; an unknown one has no places.
func of(name string) *runtime { return cmp.Or(runtimes()[name], &runtime{name: name, label: name}) }

// Label returns the name of a runtime for people.
func Label(name string) string { return of(name).label }

// Program returns the program whose presence shows that a runtime is installed.
func Program(name string) string { return of(name).binary }

// Open reports whether a runtime lets a call pass when a hook cannot start.
func Open(name string) bool { return of(name).open }

// Scopes returns the scopes in which a runtime can have hooks.
func Scopes(name string) (all []Scope) {
	for _, s := range []Scope{User, Project, Managed} {
		if _, has := of(name).places[s]; has {
			all = append(all, s)
		}
	}
	return all
}
