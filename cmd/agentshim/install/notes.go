package install

import "fmt"

// notes say what people have to know after an installation.
func (t *runtime) notes(r *Request) (all []string) {
	if r.Hook.URL != "" {
		all = append(all, fmt.Sprintf("%s asks the daemon at %s itself: keep 'agentshim serve' running, and start %s with the daemon's token in its environment: export %s=\"$(cat %s)\"",
			t.label, r.Hook.URL, t.label, TokenVariable, quote(r.Hook.TokenFile)))
	}
	if r.Hook.NATS != "" {
		all = append(all, "The hooks name the bus themselves, so they do not use the daemon of the machine; without --nats they do.")
	}
	if r.Scope == Project {
		all = append(all, fmt.Sprintf("The file is for everybody who has this project: agentshim must be %s for all of them.", r.Hook.Shim))
	}
	if t.name == "claude" && r.Scope == Project && !r.Version.Before(Blocking()) {
		all = append(all, fmt.Sprintf("Whoever has a Claude Code before %s in this project can not read the file, so none of its settings count there; with --runtime-version 2.1.294 it is written for these, too.", Blocking()))
	}
	switch {
	case t.name == "claude" && r.Version.Before(Blocking()):
		all = append(all, fmt.Sprintf("The version of Claude Code is %s; only from %s on it blocks calls when a hook can not start or crashes, so these pass. Update Claude Code, and install again.", r.Version, Blocking()))
	case t.name == "codex" && r.Scope != Managed:
		all = append(all, "Codex skips hooks without a word until they are trusted: run codex, write /hooks, and trust those of agentshim; or install with --trust; or with --managed, which needs no trust.")
	case t.name == "gemini" && r.Scope == Project, t.name == "copilot" && r.Scope == Project:
		all = append(all, t.label+" runs the hooks of a project only in folders that its user trusts.")
	case t.name == "cursor" && r.Scope == Managed:
		all = append(all, "Cursor reads that file with an Enterprise plan only.")
	case t.name == "copilot":
		all = append(all, "GitHub Copilot lets a call pass when a hook takes too long, whatever the hook is; agentshim answers before that.")
	case t.name == "agy":
		all = append(all, "Antigravity CLI is experimental: some versions do not run hooks at all, and others refuse every call when a hook fails. 'agentshim doctor' tries it.")
	}
	return all
}
