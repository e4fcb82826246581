package schema

import (
	"time"
)

// Kind is the kind of runner that runs a hook's handler.
type Kind string

// The kinds of handlers.
const (
	Builtin Kind = "builtin"
	Command Kind = "command"
	Python  Kind = "python"
	HTTP    Kind = "http"
)

// Mode says whether a hook's answer counts.
type Mode string

// The modes. The zero Mode is Enforce.
const (
	Enforce Mode = ""
	// Shadow hooks run off the path and never touch a verdict.
	Shadow Mode = "shadow"
)

// What a hook may need besides the canonical event.
const (
	NeedNative  = "native"
	NeedHistory = "history"
)

// DefaultTimeout is a hook's deadline when its configuration names none.
const DefaultTimeout = Duration(30 * time.Second)

// DefaultPool is the pool that brokers serve themselves.
const DefaultPool = "default"

// A Hook is a declared interest: at which event, for which tools, which
// handler to run where, how long to wait, and what to do when it fails. All
// defaults are already filled in by the reader of the configuration.
type Hook struct {
	// Name is unique in its configuration.
	Name string `json:"name"`
	// Event is the moment at which the hook is asked.
	Event EventType `json:"event"`
	// Agent is the agent id or glob the hook belongs to; empty: every agent.
	Agent string `json:"agent,omitzero"`
	// Matcher picks tools by name: globs, alternatives with |; empty: all.
	Matcher string `json:"matcher,omitzero"`
	// Type is the runner's kind.
	Type Kind `json:"type"`
	// Handler is what the runner runs: a builtin's name, a program, a function, a URL.
	Handler string `json:"handler"`
	// Args are the program's arguments.
	Args []string `json:"args,omitzero"`
	// Timeout is the hook's own deadline.
	Timeout Duration `json:"timeout"`
	// FailClosed makes a hook that did not answer a deny.
	FailClosed bool `json:"fail_closed,omitzero"`
	// Pool is the group of workers that runs it.
	Pool string `json:"pool"`
	// Readonly promises that it does not rewrite.
	Readonly bool `json:"readonly,omitzero"`
	// Idempotent says that it may run again on another worker.
	Idempotent bool `json:"idempotent,omitzero"`
	// Mode says whether its answer counts.
	Mode Mode `json:"mode,omitzero"`
	// When is a CEL condition over the event; empty: always.
	When string `json:"when,omitzero"`
	// Needs lists what the handler needs besides the event.
	Needs []string `json:"needs,omitzero"`
	// MaxConcurrent bounds it on each worker; 0: only the worker's own bound.
	MaxConcurrent int `json:"max_concurrent,omitzero"`
	// System hooks are not dropped by an agent's override.
	System bool `json:"system,omitzero"`
	// AutoApprove makes its allow skip the runtime's own prompt.
	AutoApprove bool `json:"auto_approve,omitzero"`
	// Shell runs a command handler through the shell.
	Shell bool `json:"shell,omitzero"`
	// Env names the variables of the worker that the handler may see.
	Env []string `json:"env,omitzero"`
	// Options configure a builtin.
	Options map[string]any `json:"options,omitzero"`
}

// An Override drops the global hooks of one event for the agents that Agent
// matches, except system ones.
type Override struct {
	Agent string    `json:"agent"`
	Event EventType `json:"event"`
}

// A Config is one version of the configuration, as every node holds it: flat,
// with all defaults filled in. A hook's id is its index in Hooks, which is
// also registration order: global hooks first, then the agents'.
type Config struct {
	// Version counts from 1; 0 is "nothing applied yet": no hooks.
	Version uint64 `json:"version"`
	// Fabric is the id of the fabric it is active in: versions of another one
	// have the same numbers. It is not part of what is stored.
	Fabric string `json:"-"`
	// Presets are the built-in groups of hooks that are switched on.
	Presets []string `json:"presets,omitzero"`
	// PythonPath lists where modules and programs are looked up.
	PythonPath []string `json:"python_path,omitzero"`
	// Dir is the folder of the file the configuration came from. Relative
	// handlers are looked up there, unless a worker names a folder of its own.
	Dir string `json:"dir,omitzero"`
	// Hooks are all hooks in registration order.
	Hooks []Hook `json:"hooks"`
	// Overrides are the events whose global hooks some agents drop.
	Overrides []Override `json:"overrides,omitzero"`
}
