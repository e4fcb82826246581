package schema

import (
	"strings"
	"time"
)

// Kind is the kind of a hook's handler. Each kind has a runner.
type Kind string

// The kinds of handlers.
const (
	Builtin Kind = "builtin"
	Command Kind = "command"
	Python  Kind = "python"
	HTTP    Kind = "http"
	// CEL is a hook without a handler: its options are CEL expressions.
	CEL Kind = "cel"
)

// Kinds returns all kinds of handlers.
func Kinds() []Kind { return []Kind{Builtin, CEL, Command, Python, HTTP} }

// Mode says whether a hook's answer counts.
type Mode string

// The modes. The zero Mode is Enforce: the answer counts.
const (
	Enforce Mode = ""
	// Shadow hooks run beside the call and never change a verdict.
	Shadow Mode = "shadow"
)

// The members beside the canonical event that a hook may need.
const (
	NeedNative  = "native"
	NeedHistory = "history"
	// NeedAction is the facts of the tool call, see package action.
	NeedAction = "action"
)

// DefaultTimeout is the timeout of a hook whose configuration names none.
const DefaultTimeout = Duration(30 * time.Second)

// DefaultPool is the pool that brokers serve with workers of their own.
const DefaultPool = "default"

// maxPool is the maximum length of a pool's name.
const maxPool = 64

// IsPool reports whether name is a valid pool name: 1 to 64 letters, digits, - and _.
func IsPool(name string) bool {
	strange := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}
	return name != "" && len(name) <= maxPool && !strings.ContainsFunc(name, strange)
}

// A Hook declares which handler runs at which event and for which tools. It also has the
// timeout and the failure policy. The reader of the configuration has filled in all defaults.
type Hook struct {
	// Name is unique in the configuration.
	Name string `json:"name"`
	// Event is the event at which the hook runs.
	Event EventType `json:"event"`
	// Agent is the agent id or glob that the hook belongs to; empty: every agent.
	Agent string `json:"agent,omitzero"`
	// Matcher selects tools by name: globs, with | between alternatives; empty: every tool.
	Matcher string `json:"matcher,omitzero"`
	// Type is the kind of the handler.
	Type Kind `json:"type"`
	// Handler is what the runner calls: a builtin's name, a program, a Python function or a
	// URL. A hook of type cel has none.
	Handler string `json:"handler,omitzero"`
	// Args are the arguments of a program.
	Args []string `json:"args,omitzero"`
	// Timeout limits each run of the hook.
	Timeout Duration `json:"timeout"`
	// FailClosed turns a failure of the hook into a deny.
	FailClosed bool `json:"fail_closed,omitzero"`
	// Pool is the group of workers that runs the hook.
	Pool string `json:"pool"`
	// Readonly promises that the hook does not rewrite. The fabric runs readonly hooks
	// concurrently.
	Readonly bool `json:"readonly,omitzero"`
	// Idempotent allows a second run on another worker if the first worker is lost.
	Idempotent bool `json:"idempotent,omitzero"`
	// Mode says whether the hook's answer counts.
	Mode Mode `json:"mode,omitzero"`
	// When is a CEL condition over the event; empty: the hook always runs.
	When string `json:"when,omitzero"`
	// Needs lists what the handler needs beside the event: "native", "history", "action".
	Needs []string `json:"needs,omitzero"`
	// MaxConcurrent limits concurrent runs on each worker; 0: only the worker's own limit.
	MaxConcurrent int `json:"max_concurrent,omitzero"`
	// System protects the hook from an agent's override.
	System bool `json:"system,omitzero"`
	// AutoApprove lets the hook's allow skip the runtime's own prompt.
	AutoApprove bool `json:"auto_approve,omitzero"`
	// Shell runs a command handler through the shell.
	Shell bool `json:"shell,omitzero"`
	// Env lists the worker's environment variables that the handler can read.
	Env []string `json:"env,omitzero"`
	// Options configure a builtin, and have the expressions of a hook of type cel.
	Options map[string]any `json:"options,omitzero"`
	// Headers are the HTTP headers of an http hook. ${NAME} in a value stands for the worker's
	// environment variable NAME, so that the configuration holds no secret.
	Headers map[string]string `json:"headers,omitzero"`
	// Sign names the worker's environment variable whose value signs the requests of an http
	// hook, with HMAC-SHA256; empty: requests are not signed.
	Sign string `json:"sign,omitzero"`
	// TLS configures certificates for an http hook. The zero TLS trusts the machine's
	// authorities.
	TLS TLS `json:"tls,omitzero"`
	// Registered reports that a control request registered the hook, and that no file contains
	// it.
	Registered bool `json:"registered,omitzero"`
	// Preset is the preset that the hook belongs to; empty: a user wrote the hook. A preset's
	// hook yields to any other hook with the same handler and event for the same agent.
	Preset string `json:"preset,omitzero"`
	// Pack is the pack whose rules the hook has; empty: it is of no pack.
	Pack string `json:"pack,omitzero"`
}

// TLS names files in PEM form, and the server's name. Relative paths resolve as programs do.
type TLS struct {
	// CA holds the trusted authorities, instead of the machine's.
	CA string `json:"ca,omitzero"`
	// Cert and Key are the client certificate for servers that ask for one.
	Cert string `json:"cert,omitzero"`
	Key  string `json:"key,omitzero"`
	// ServerName is the name in the server's certificate; empty: the URL's host.
	ServerName string `json:"server_name,omitzero"`
}

// PythonHosts configures the host processes of Python functions. The zero value has good
// defaults.
type PythonHosts struct {
	// Interpreter is the Python program; empty: python3. It resolves as programs do, so it can
	// name a virtual environment beside the file.
	Interpreter string `json:"interpreter,omitzero"`
	// Hosts is the number of host processes in each worker; 0: 2.
	Hosts int `json:"hosts,omitzero"`
	// Memory limits the memory of one host, in bytes; 0: 1 GiB.
	Memory int64 `json:"memory,omitzero"`
	// Recycle replaces a host after that many calls; 0: never.
	Recycle int `json:"recycle,omitzero"`
}

// An Override drops the global hooks of one event, except system hooks, for the agents that
// match Agent.
type Override struct {
	Agent string    `json:"agent"`
	Event EventType `json:"event"`
	// Registered reports that a control request registered the override, and that no file
	// contains it.
	Registered bool `json:"registered,omitzero"`
}

// A Config is one version of the configuration, as every node holds it: flat, with all defaults
// filled in. A hook's id is its index in Hooks. Hooks are in registration order: global hooks
// first, then the agents' hooks.
type Config struct {
	// Version counts from 1. Version 0 has no hooks: no configuration has been applied yet.
	Version uint64 `json:"version"`
	// Fabric is the id of the fabric that the version belongs to, because two fabrics may use
	// the same numbers. It is not stored.
	Fabric string `json:"-"`
	// Presets lists the active presets, which are built-in groups of hooks.
	Presets []string `json:"presets,omitzero"`
	// Packs lists the packs of rules. Their rules are in Hooks.
	Packs []Pack `json:"packs,omitzero"`
	// PackExceptions lists the exceptions from rules.
	PackExceptions []RuleException `json:"pack_exceptions,omitzero"`
	// PythonPath lists the folders of Python modules and programs.
	PythonPath []string `json:"python_path,omitzero"`
	// Python configures the host processes of Python functions.
	Python PythonHosts `json:"python,omitzero"`
	// Dir is the folder of the configuration's file. Relative handlers are relative to it,
	// unless a worker names a folder of its own.
	Dir string `json:"dir,omitzero"`
	// Hooks lists all hooks in registration order.
	Hooks []Hook `json:"hooks"`
	// Overrides lists the events whose global hooks some agents drop.
	Overrides []Override `json:"overrides,omitzero"`
}

// Derived reports whether the hook is of a preset or a pack, so that no user wrote it.
func (h *Hook) Derived() bool { return h.Preset != "" || h.Pack != "" }

// HookCount returns the number of hooks except those of presets.
func (c *Config) HookCount() (n int) {
	for i := range c.Hooks {
		if c.Hooks[i].Preset == "" {
			n++
		}
	}
	return n
}
