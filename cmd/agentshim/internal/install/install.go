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

// A Scope says whose agents an installation is for.
type Scope string

// The scopes.
const (
	// User is all agents of one user.
	User Scope = "user"
	// Project is the agents that work in one folder.
	Project Scope = "project"
	// Managed is all agents of a machine; users cannot change it.
	Managed Scope = "managed"
)

// A Request says what is to be installed where.
type Request struct {
	// Runtime names the runtime.
	Runtime string
	Scope   Scope
	Machine Machine
	Hook    Hook
	// Version is the installed version of the runtime; the zero Version: unknown,
	// so that nothing is written that some version refuses.
	Version probe.Version
}

// A Hook is what the installed command lines say.
type Hook struct {
	// Shim is the absolute path of agentshim, as the runtime will find it.
	Shim string
	// Agent, NATS, Creds, State and Unreachable are flags of `agentshim hook`; empty ones
	// are left out.
	Agent, NATS, Creds, State, Unreachable string
	// TLS are flags of it, too.
	TLS certs.Files
	// Timeout is how long the runtime waits.
	Timeout time.Duration
	// URL is the daemon's, for runtimes that ask it themselves; empty: they start
	// the shim.
	URL string
	// TokenFile is the file with the daemon's token, which people are told of.
	TokenFile string
	// Approve also installs at the moment at which the runtime would ask its user.
	Approve bool
	// Models also installs at calls of the model.
	Models bool
}

// A Plan is what an installation changes, and what people should know of it.
type Plan struct {
	Changes []Change
	// Notes are sentences about what is left to do, or cannot be done.
	Notes []string
}

// Install plans an installation. Nothing is written yet.
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

// Uninstall plans to take an installation out again.
func (r *Request) Uninstall(context.Context) (Plan, error) {
	t, err := r.target()
	if err != nil {
		return Plan{}, err
	}
	return t.uninstall(r)
}

// Changed reports whether there is anything to do.
func (p *Plan) Changed() bool {
	return slices.ContainsFunc(p.Changes, func(c Change) bool { return c.changes() })
}

// Apply makes the changes, one file after the other, and says in sentences what
// was done.
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

// Diff shows what would be changed.
func (p *Plan) Diff() string {
	var b strings.Builder
	for _, c := range p.Changes {
		b.WriteString(c.diff())
	}
	return b.String()
}
