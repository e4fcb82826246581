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
	// User is for all agents of one user.
	User Scope = "user"
	// Project is for the agents that work in one folder.
	Project Scope = "project"
	// Managed is for all agents of a machine; users cannot change it.
	Managed Scope = "managed"
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
