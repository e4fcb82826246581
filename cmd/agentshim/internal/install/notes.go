package install

import (
	"fmt"
	"os"
)

// notes returns sentences for people about the time after an installation.
func (t *runtime) notes(r *Request) (all []string) {
	if r.Hook.URL != "" {
		all = append(all, fmt.Sprintf("%s asks the daemon at %s itself. Keep 'agentshim serve' running, and start %s with the daemon's token in its environment: export %s=\"$(cat %s)\"",
			t.label, r.Hook.URL, t.label, TokenVariable, Quote(r.Hook.TokenFile)))
	}
	if r.Hook.NATS != "" {
		all = append(all, "With --nats, each hook connects to the fabric itself. For faster calls, start 'agentshim serve' with the same --nats, and install again without --nats.")
	}
	if r.Scope == Project {
		all = append(all, fmt.Sprintf("The file is for everyone with this project, so agentshim must be at %s on each machine. Where it is missing, the hooks refuse prompts and tool calls, and the reason says so.", r.Hook.Shim))
	}
	if r.Scope == Project && t.places[Project].reach == here {
		all = append(all, fmt.Sprintf("%s reads the file only when it starts in %s itself, not in a folder below.", t.label, r.Machine.Dir))
	}
	if t.name == "claude" && r.Scope == Project && !r.Version.Before(Blocking()) {
		all = append(all, fmt.Sprintf("Claude Code before %s cannot read this file and ignores all settings in it. To support such versions in this project, install with --runtime-version 2.1.294.", Blocking()))
	}
	if _, err := os.Stat(r.Hook.Shim); err != nil && r.Machine.Root == "" {
		all = append(all, fmt.Sprintf("There is no program at %s yet (%v). The hooks refuse calls until you put agentshim there.", r.Hook.Shim, err))
	}
	if t.open {
		all = append(all, fmt.Sprintf("%s lets calls pass when a hook cannot start or is killed, and no setting changes that. The hooks themselves refuse calls while %s is missing. After you move it, install again.", t.label, r.Hook.Shim))
	}
	switch {
	case t.name == "claude" && !r.Version.Known():
		all = append(all, fmt.Sprintf("The version of Claude Code is unknown, so agentshim wrote hooks for every version: calls pass when a hook crashes. Claude Code %s or later can block such calls: install again with --runtime-version and its version.", Blocking()))
	case t.name == "claude" && r.Version.Before(Blocking()):
		all = append(all, fmt.Sprintf("The version of Claude Code is %s. It lets calls pass when a hook crashes; %s or later blocks them. Update Claude Code, and install again.", r.Version, Blocking()))
	case t.name == "codex" && r.Scope != Managed:
		all = append(all, "Codex silently skips hooks that it does not trust. Run codex, enter /hooks, and trust those of agentshim; or install with --trust; or with --managed, which needs no trust.")
	case t.name == "gemini" && r.Scope == Managed:
		all = append(all, "Users can still switch these hooks off: with their command lines in hooksConfig.disabled, with GEMINI_CLI_SYSTEM_SETTINGS_PATH, "+
			"and in folders that they do not trust. 'agentshim doctor' finds the first two.")
	case t.name == "opencode":
		all = append(all, "With --pure or OPENCODE_PURE, OpenCode loads no plugins, not even managed ones, and does not ask the fabric. Watch for silent hosts with 'broker status --agents'.")
	case t.name == "gemini" && r.Scope == Project, t.name == "copilot" && r.Scope == Project:
		all = append(all, t.label+" runs the hooks of a project only in folders that its user trusts.")
	case t.name == "cursor" && r.Scope == Managed:
		all = append(all, "Cursor reads this file only with an Enterprise plan.")
	case t.name == "copilot":
		all = append(all, "GitHub Copilot lets a call pass when a hook takes too long. agentshim answers before that.")
	case t.name == "agy":
		all = append(all, "Support for Antigravity CLI is experimental: some versions run no hooks, others refuse every call when a hook fails. 'agentshim doctor' tests the hook.")
	}
	return all
}
