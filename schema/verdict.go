package schema

import (
	"github.com/go-json-experiment/json/jsontext"
)

// A Verdict is the fold of all outcomes of one event. The shim obeys it. The zero Verdict means
// that no hook has an opinion. It is the unit of the fold.
type Verdict struct {
	// EventID is the id of the event. It does not travel; clients set it, so that they can
	// acknowledge the delivery.
	EventID string `json:"-"`
	// Decision is the folded decision. It may be None inside the fabric, but a verdict on the
	// wire always has one.
	Decision Decision `json:"decision"`
	// Reason is the reason of Decision.
	Reason string `json:"reason,omitzero"`
	// AutoApprove lets the allow skip the runtime's own prompt.
	AutoApprove bool `json:"auto_approve,omitzero"`
	// UpdatedInput replaces the tool's input; nil: no rewrite. `{}` is a rewrite.
	UpdatedInput jsontext.Value `json:"updated_input,omitzero"`
	// UpdatedOutput replaces the tool's output; nil: no rewrite.
	UpdatedOutput jsontext.Value `json:"updated_output,omitzero"`
	// Value is a stop's value, or the rewritten message or response. At the Post events it
	// replaces the tool's output, and takes precedence over updated_output.
	Value jsontext.Value `json:"value,omitzero"`
	// Effects are changes that the agent's side applies in order, before Value.
	Effects []jsontext.Value `json:"effects,omitzero"`
	// Injections are in registration order. Each has its own strategy.
	Injections []Injection `json:"injections,omitzero"`
	// ExecutedHooks lists the hooks that ran, with their outcomes.
	ExecutedHooks []ExecutedHook `json:"executed_hooks,omitzero"`
	// HookErrors has one sentence for each error.
	HookErrors []string `json:"hook_errors,omitzero"`
	// Restart asks the agent's side to restart the agent's turn.
	Restart *Restart `json:"restart,omitzero"`
	// Terminate asks the agent's side to end the run.
	Terminate *Terminate `json:"terminate,omitzero"`
	// Workspaces lists the snapshots that texts of the verdict name. Clients unpack them before
	// they deliver the verdict.
	Workspaces []Workspace `json:"workspaces,omitzero"`
	// Acked lists the events that the request acknowledged. The fabric has stored these
	// acknowledgements permanently.
	Acked []string `json:"acked,omitzero"`
	// ConfigVersion is the version of the configuration that judged the event.
	ConfigVersion uint64 `json:"config_version,omitzero"`
	// Frozen reports that a [Freeze] refused the call, not a hook.
	Frozen bool `json:"frozen,omitzero"`
	// FreezeVersion counts the changes of the freezes; absent: no change yet. A shim that knows
	// another version asks for the policy.
	FreezeVersion uint64 `json:"freeze_version,omitzero"`
	// Fabric is the id of the fabric that judged the event. Shims store their state separately
	// for each fabric.
	Fabric string `json:"fabric,omitzero"`
}

// Restart requests a new turn that begins with Content.
type Restart struct {
	Reason  string `json:"reason,omitzero"`
	Content string `json:"content,omitzero"`
}

// Terminate requests the end of the run.
type Terminate struct {
	Reason string `json:"reason,omitzero"`
}

// ExecutedHook is one hook's entry in a verdict.
type ExecutedHook struct {
	Hook     string      `json:"hook"`
	Decision Decision    `json:"decision,omitzero"`
	Reason   string      `json:"reason,omitzero"`
	Outcome  OutcomeKind `json:"outcome"`
	Duration Duration    `json:"duration,omitzero"`
	Worker   string      `json:"worker,omitzero"`
	Mode     Mode        `json:"mode,omitzero"`
	Error    string      `json:"error,omitzero"`
}

// Ended reports whether v, the fold of some hooks at t, ends the chain, so that later hooks do
// not count. A fail at the Post events does not end the chain by itself. If a stop follows, the
// decision stays fail, and the stop is the last of ExecutedHooks.
func (v *Verdict) Ended(t EventType) bool {
	if t.Terminal(v.Decision) {
		return true
	}
	n := len(v.ExecutedHooks)
	return v.Decision == Fail && n > 0 && t.Terminal(v.ExecutedHooks[n-1].Decision)
}

// Blocks reports whether decision d at event t blocks the call or ends the run. Such a verdict
// delivers no queued items. A deny at the Post events is only feedback, and does not block.
func (t EventType) Blocks(d Decision) bool {
	switch d {
	case Deny:
		return t == PreToolUse || t == UserPromptSubmit
	case Fail, Stop:
		return true
	}
	return false
}
