package schema

import (
	"strings"
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

// maxPool bounds a pool's name.
const maxPool = 64

// IsPool reports whether a pool can be called so: 1 to 64 letters, digits, - and _.
func IsPool(name string) bool {
	strange := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}
	return name != "" && len(name) <= maxPool && !strings.ContainsFunc(name, strange)
}

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
	// Headers are sent by an http hook. ${NAME} in a value stands for the
	// worker's environment variable NAME, so that no secret is in a configuration.
	Headers map[string]string `json:"headers,omitzero"`
	// Sign names the worker's environment variable whose value signs the
	// requests of an http hook, with HMAC-SHA256; empty: they are not signed.
	Sign string `json:"sign,omitzero"`
	// TLS is how an http hook trusts its server and shows who it is itself; the
	// zero TLS trusts what the worker's machine trusts.
	TLS TLS `json:"tls,omitzero"`
	// Registered: it was registered at run time, and not read from a file.
	Registered bool `json:"registered,omitzero"`
	// Preset is the preset that the hook belongs to; empty: somebody wrote it. A
	// hook of a preset yields to every other one of the same handler and event
	// that is asked for the agent.
	Preset string `json:"preset,omitzero"`
}

// TLS are files in PEM form, looked up where programs are, and the server's name.
type TLS struct {
	// CA holds the authorities that are trusted, instead of the machine's.
	CA string `json:"ca,omitzero"`
	// Cert and Key are what is shown to a server that asks who calls.
	Cert string `json:"cert,omitzero"`
	Key  string `json:"key,omitzero"`
	// ServerName is the name in the server's certificate; empty: the URL's host.
	ServerName string `json:"server_name,omitzero"`
}

// PythonHosts say how a worker runs functions. The zero PythonHosts are good for
// most.
type PythonHosts struct {
	// Interpreter is the program; empty: python3. It is looked up where programs
	// are, so that a virtual environment beside the file can be named.
	Interpreter string `json:"interpreter,omitzero"`
	// Hosts is how many host processes a worker keeps; 0: 2.
	Hosts int `json:"hosts,omitzero"`
	// Memory bounds the memory of one host, in bytes; 0: 1 GiB.
	Memory int64 `json:"memory,omitzero"`
	// Recycle replaces a host after so many calls; 0: never.
	Recycle int `json:"recycle,omitzero"`
}

// An Override drops the global hooks of one event for the agents that Agent
// matches, except system ones.
type Override struct {
	Agent string    `json:"agent"`
	Event EventType `json:"event"`
	// Registered: it was registered at run time, and not read from a file.
	Registered bool `json:"registered,omitzero"`
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
	// Python says how functions are run.
	Python PythonHosts `json:"python,omitzero"`
	// Dir is the folder of the file the configuration came from. Relative
	// handlers are looked up there, unless a worker names a folder of its own.
	Dir string `json:"dir,omitzero"`
	// Hooks are all hooks in registration order.
	Hooks []Hook `json:"hooks"`
	// Overrides are the events whose global hooks some agents drop.
	Overrides []Override `json:"overrides,omitzero"`
}

// Written counts the hooks that somebody wrote: all but those of presets.
func (c *Config) Written() (n int) {
	for i := range c.Hooks {
		if c.Hooks[i].Preset == "" {
			n++
		}
	}
	return n
}
