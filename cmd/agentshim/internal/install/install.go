// Package install adds the shim to the configurations of agent runtimes, and removes it.
//
// It changes only the shim's own entries in a file, and keeps a copy of the old file beside
// the new one. It does not touch files that it cannot read. A second installation changes
// nothing, or updates an older installation.
//
//	install.go   requests and plans
//	runtime.go   the runtimes: files, events, shapes
//	command.go   the command line that a runtime runs
//	entry.go     the command line as an entry of a configuration, and how to recognise it
//	merge.go     adding entries to JSON, and removing them
//	toml.go      the same for Codex's requirements
//	file.go      reading, replacing and copying files
package install

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
)

// A Scope determines the agents that an installation is for.
type Scope string

// The scopes.
const (
	User    Scope = "user"    // for all agents of one user
	Project Scope = "project" // for the agents that work in one folder
	Managed Scope = "managed" // for all agents of a machine; users cannot change it
)

// A Request describes an installation.
type Request struct {
	// Runtime names the runtime.
	Runtime string
	Scope   Scope
	Machine Machine
	Hook    Hook
	// Version is the version of the runtime; zero: the installation writes nothing that some version rejects.
	Version probe.Version
}

// A Hook holds the parameters of the installed command lines.
type Hook struct {
	// Shim is the absolute path of agentshim, as the runtime will find it.
	Shim string
	// Agent, NATS, Creds, State and Unreachable are flags of `agentshim hook`. Empty ones are omitted.
	Agent, NATS, Creds, State, Unreachable string
	// TLS holds further flags of it.
	TLS certs.Files
	// Timeout is how long the runtime waits.
	Timeout time.Duration
	// URL is the daemon's, for runtimes that ask it themselves; empty: they start the shim.
	URL string
	// TokenFile is the file with the daemon's token. Notes name it.
	TokenFile string
	// Approve also installs a hook at the moment at which the runtime would ask its user.
	Approve bool
	// Models also installs hooks at calls of the model.
	Models bool
}

// A Plan lists the changes of an installation, with notes for people.
type Plan struct {
	Changes []Change
	// Notes are sentences about remaining steps and limitations.
	Notes []string
}

// Install plans an installation. It writes nothing.
func (r *Request) Install(context.Context) (Plan, error) {
	t, err := r.target()
	if err != nil {
		return Plan{}, err
	}
	if err := r.Hook.check(t, r.Version); err != nil {
		return Plan{}, err
	}
	p, err := t.install(r)
	if err != nil {
		return Plan{}, err
	}
	p.Notes = append(p.Notes, t.notes(r)...)
	return p, nil
}

// Uninstall plans the removal of an installation. It writes nothing.
func (r *Request) Uninstall(context.Context) (Plan, error) {
	t, err := r.target()
	if err != nil {
		return Plan{}, err
	}
	return t.uninstall(r)
}

// Changed reports whether the plan has any change.
func (p *Plan) Changed() bool {
	return slices.ContainsFunc(p.Changes, func(c Change) bool { return c.changes() })
}

// Apply makes the changes, one file after the other, and returns sentences that describe them.
func (p *Plan) Apply(now time.Time) (said []string, err error) {
	for _, c := range p.Changes {
		s, err := c.apply(now)
		if err != nil {
			return said, fmt.Errorf("%s: %w", c.Path, err)
		}
		said = append(said, s)
	}
	return said, nil
}

// Diff returns the changes as a diff.
func (p *Plan) Diff() string {
	var b strings.Builder
	for _, c := range p.Changes {
		b.WriteString(c.diff())
	}
	return b.String()
}

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
