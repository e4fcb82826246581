package schema

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The actions of a [ConfigRequest].
const (
	// ActionApply makes the text of a hooks.yaml the active version.
	ActionApply = "apply"
	// ActionShow answers with a version.
	ActionShow = "show"
	// ActionHistory answers with the versions that are kept.
	ActionHistory = "history"
	// ActionRollback makes what an earlier version says the active one again.
	ActionRollback = "rollback"
)

// A ConfigRequest is the request of the control verb "config".
type ConfigRequest struct {
	// Action is one of the actions above.
	Action string `json:"action"`
	// Source is the text of the hooks.yaml to apply.
	Source string `json:"source,omitzero"`
	// File is the file's name, for messages and the history.
	File string `json:"file,omitzero"`
	// Dir is the file's folder, where handlers are looked up.
	Dir string `json:"dir,omitzero"`
	// Version is which one to show (0: the active one) or to go back to.
	Version uint64 `json:"version,omitzero"`
	// Force goes on although some handler can not be loaded somewhere.
	Force bool `json:"force,omitzero"`
}

// A ConfigAnswer is the answer to a [ConfigRequest].
type ConfigAnswer struct {
	// Version is the active version now; of a show, the version shown.
	Version uint64 `json:"version"`
	// Changed: another version was active before.
	Changed bool `json:"changed,omitzero"`
	// Refused: nothing was changed, because of the Problems.
	Refused bool `json:"refused,omitzero"`
	// Problems are what nodes can not load.
	Problems []Problem `json:"problems,omitzero"`
	// Warnings are about the file.
	Warnings []string `json:"warnings,omitzero"`
	// Config is the version shown, Text the same as a hooks.yaml.
	Config *Config `json:"config,omitzero"`
	Text   string  `json:"text,omitzero"`
	// History are the versions that are kept, newest first.
	History []VersionInfo `json:"history,omitzero"`
}

// A Problem is why a node can not do what a version wants.
type Problem struct {
	// Node is a broker or a worker.
	Node string `json:"node"`
	// Hook is the hook whose handler can not be loaded; empty: the version can
	// not be used there at all, or the node did not say in time.
	Hook  string `json:"hook,omitzero"`
	Error string `json:"error"`
}

// VersionInfo tells of a version of the configuration.
type VersionInfo struct {
	Version uint64 `json:"version"`
	// At is when it became active, by the clock of who saw to that.
	At time.Time `json:"at"`
	// By is the node that saw to it.
	By string `json:"by,omitzero"`
	// Note says what it was: a file that was applied, a hook that was registered.
	Note string `json:"note,omitzero"`
	// Hooks counts its hooks.
	Hooks int `json:"hooks"`
	// Minor: hooks were registered or unregistered. Such versions go first when
	// there are too many to keep.
	Minor bool `json:"minor,omitzero"`
	// Digest is the SHA-256 of the version as it is stored, in hex; absent: it was
	// stored by an earlier release.
	Digest string `json:"digest,omitzero"`
}

// The actions of a [HooksRequest].
const (
	// ActionRegister adds hooks, or replaces those of the same name that were
	// registered before.
	ActionRegister = "register"
	// ActionUnregister takes registered hooks away.
	ActionUnregister = "unregister"
	// ActionList answers with the hooks that are registered.
	ActionList = "list"
)

// A HooksRequest is the request of the control verb "hooks". The agent of its
// subject is the agent, or glob, that the hooks belong to; none: every agent.
type HooksRequest struct {
	// Action is one of the actions above.
	Action string `json:"action"`
	// Hooks is what stands below `hooks:` in a hooks.yaml, as JSON: events with
	// their hooks, or with `override` and `hooks`; or the flat list.
	Hooks jsontext.Value `json:"hooks,omitzero"`
	// Names are the hooks to unregister.
	Names []string `json:"names,omitzero"`
	// Overrides are the events whose registered override ends.
	Overrides []EventType `json:"overrides,omitzero"`
	// Dir is where relative handlers are looked up; it is only taken while the
	// configuration names no folder.
	Dir string `json:"dir,omitzero"`
	// Force goes on although some handler can not be loaded somewhere.
	Force bool `json:"force,omitzero"`
}

// A HooksAnswer is the answer to a [HooksRequest].
type HooksAnswer struct {
	// Version is the active version now.
	Version uint64 `json:"version"`
	// Changed: another version was active before.
	Changed bool `json:"changed,omitzero"`
	// Refused: nothing was changed, because of the Problems.
	Refused bool `json:"refused,omitzero"`
	// Problems are what nodes can not load.
	Problems []Problem `json:"problems,omitzero"`
	// Names are the hooks that were registered or unregistered.
	Names []string `json:"names,omitzero"`
	// Hooks and Overrides are those that are registered, of a list.
	Hooks     []Hook     `json:"hooks,omitzero"`
	Overrides []Override `json:"overrides,omitzero"`
}
