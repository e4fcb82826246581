package schema

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The actions of a [ConfigRequest].
const (
	// ActionApply makes the text of a hooks.yaml the active version.
	ActionApply = "apply"
	// ActionShow returns one version.
	ActionShow = "show"
	// ActionHistory returns the stored versions.
	ActionHistory = "history"
	// ActionRollback applies an earlier version again, under a new number.
	ActionRollback = "rollback"
)

// A ConfigRequest is the request of the control verb "config".
type ConfigRequest struct {
	// Action is "apply", "show", "history" or "rollback".
	Action string `json:"action"`
	// Source is the text of the hooks.yaml to apply.
	Source string `json:"source,omitzero"`
	// Files are the files of rules that the hooks.yaml names, each with its text.
	Files map[string]string `json:"files,omitzero"`
	// File is the file's name. Messages and the history show it.
	File string `json:"file,omitzero"`
	// Dir is the file's folder. Relative handlers are relative to it.
	Dir string `json:"dir,omitzero"`
	// Version is the version to show or to roll back to. For show, 0 is the active one.
	Version uint64 `json:"version,omitzero"`
	// Force applies the version even if some node cannot load some handler.
	Force bool `json:"force,omitzero"`
}

// A ConfigAnswer is the answer to a [ConfigRequest].
type ConfigAnswer struct {
	// Version is the active version after the request; for show, the version shown.
	Version uint64 `json:"version"`
	// Changed reports whether the request activated another version.
	Changed bool `json:"changed,omitzero"`
	// Refused reports that the broker changed nothing, because of Problems.
	Refused bool `json:"refused,omitzero"`
	// Problems lists what nodes cannot load.
	Problems []Problem `json:"problems,omitzero"`
	// Warnings lists doubtful places in the file.
	Warnings []string `json:"warnings,omitzero"`
	// Config is the version shown. Text is the same version as a hooks.yaml.
	Config *Config `json:"config,omitzero"`
	Text   string  `json:"text,omitzero"`
	// History lists the stored versions, newest first.
	History []VersionInfo `json:"history,omitzero"`
}

// A Problem says why a node cannot use a version.
type Problem struct {
	// Node is the name of a broker or worker.
	Node string `json:"node"`
	// Hook is the hook whose handler the node cannot load. Empty: the node cannot use the
	// version at all, or did not answer in time.
	Hook  string `json:"hook,omitzero"`
	Error string `json:"error"`
}

// VersionInfo describes one version of the configuration.
type VersionInfo struct {
	Version uint64 `json:"version"`
	// At is the time of activation, by the clock of the node that activated it.
	At time.Time `json:"at"`
	// By is the node that activated the version.
	By string `json:"by,omitzero"`
	// Note says where the version came from, such as an applied file or a registered hook.
	Note string `json:"note,omitzero"`
	// Hooks is the number of hooks in the version.
	Hooks int `json:"hooks"`
	// Minor reports that the version only registered or unregistered hooks. Brokers delete
	// minor versions first when they store too many.
	Minor bool `json:"minor,omitzero"`
	// Digest is the SHA-256 of the stored version, in hex. Absent: an earlier release stored
	// it.
	Digest string `json:"digest,omitzero"`
}

// The actions of a [HooksRequest].
const (
	// ActionRegister adds hooks, or replaces those of the same name that were
	// registered before.
	ActionRegister = "register"
	// ActionUnregister removes registered hooks.
	ActionUnregister = "unregister"
	// ActionList returns the registered hooks.
	ActionList = "list"
)

// A HooksRequest is the request of the control verb "hooks". The agent of its subject is the
// agent id, or glob, that the hooks belong to. A subject without an agent means every agent.
type HooksRequest struct {
	// Action is "register", "unregister" or "list".
	Action string `json:"action"`
	// Hooks is the value of `hooks:` in a hooks.yaml, as JSON: events with their hooks, or with
	// `override` and `hooks`; or the flat list.
	Hooks jsontext.Value `json:"hooks,omitzero"`
	// Names lists the hooks to unregister.
	Names []string `json:"names,omitzero"`
	// Overrides lists the events whose registered override ends.
	Overrides []EventType `json:"overrides,omitzero"`
	// Dir is the folder of relative handlers. The broker uses it only if the configuration
	// names no folder.
	Dir string `json:"dir,omitzero"`
	// Force registers the hooks even if some node cannot load some handler.
	Force bool `json:"force,omitzero"`
}

// A HooksAnswer is the answer to a [HooksRequest].
type HooksAnswer struct {
	// Version is the active version after the request.
	Version uint64 `json:"version"`
	// Changed reports whether the request activated another version.
	Changed bool `json:"changed,omitzero"`
	// Refused reports that the broker changed nothing, because of Problems.
	Refused bool `json:"refused,omitzero"`
	// Problems lists what nodes cannot load.
	Problems []Problem `json:"problems,omitzero"`
	// Names lists the hooks that the request registered or unregistered.
	Names []string `json:"names,omitzero"`
	// Hooks and Overrides list what is registered. Only a list request returns them.
	Hooks     []Hook     `json:"hooks,omitzero"`
	Overrides []Override `json:"overrides,omitzero"`
}
