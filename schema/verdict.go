package schema

import (
	"github.com/go-json-experiment/json/jsontext"
)

// A Verdict is the fold of all outcomes of one event: what the shim obeys.
// The zero Verdict is "nobody had an opinion", the unit of the fold.
type Verdict struct {
	// EventID is that of the event it is about. It does not travel: clients set
	// it, so that they can be told what was handed over.
	EventID string `json:"-"`
	// Decision is None until the verdict leaves the fabric, then never empty.
	Decision Decision `json:"decision"`
	// Reason belongs to Decision.
	Reason string `json:"reason,omitzero"`
	// AutoApprove: the allow also skips the runtime's own prompt.
	AutoApprove bool `json:"auto_approve,omitzero"`
	// UpdatedInput replaces the tool's input; nil: not rewritten. `{}` is a rewrite.
	UpdatedInput jsontext.Value `json:"updated_input,omitzero"`
	// UpdatedOutput replaces the tool's output; nil: not rewritten.
	UpdatedOutput jsontext.Value `json:"updated_output,omitzero"`
	// Value is a stop's value, or the rewritten message or response.
	Value jsontext.Value `json:"value,omitzero"`
	// Effects are applied by the agent's side, in order, before Value.
	Effects []jsontext.Value `json:"effects,omitzero"`
	// Injections are in registration order, each with its own strategy.
	Injections []Injection `json:"injections,omitzero"`
	// ExecutedHooks is the trail: which hooks were asked, and what came of it.
	ExecutedHooks []ExecutedHook `json:"executed_hooks,omitzero"`
	// HookErrors are sentences, one for each thing that went wrong.
	HookErrors []string `json:"hook_errors,omitzero"`
	// Restart asks the agent's side to start the agent's turn anew.
	Restart *Restart `json:"restart,omitzero"`
	// Terminate asks the agent's side to end the run.
	Terminate *Terminate `json:"terminate,omitzero"`
	// Workspaces are snapshots that texts of the verdict name. Clients unpack
	// them before they hand the verdict on.
	Workspaces []Workspace `json:"workspaces,omitzero"`
	// Acked are events that the question acknowledged, and whose injections are
	// now known for ever to have been handed over.
	Acked []string `json:"acked,omitzero"`
	// ConfigVersion is the version of the configuration that judged.
	ConfigVersion uint64 `json:"config_version,omitzero"`
	// Frozen: no hook refused the call, but a [Freeze] of its agent.
	Frozen bool `json:"frozen,omitzero"`
	// FreezeVersion counts how often agents were frozen or thawed; absent: never. Who
	// knows another one asks for the policy.
	FreezeVersion uint64 `json:"freeze_version,omitzero"`
	// Fabric is the id of the fabric that judged; shims keep their state by it.
	Fabric string `json:"fabric,omitzero"`
}

// Restart asks for a new turn that begins with Content.
type Restart struct {
	Reason  string `json:"reason,omitzero"`
	Content string `json:"content,omitzero"`
}

// Terminate asks for the end of the run.
type Terminate struct {
	Reason string `json:"reason,omitzero"`
}

// ExecutedHook is one line of a verdict's trail.
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

// Blocks reports whether a verdict of event t with decision d blocks or ends:
// such a verdict claims nothing from the injection queue. Feedback on the
// Post events does not hold delivery back.
func (t EventType) Blocks(d Decision) bool {
	switch d {
	case Deny:
		return t == PreToolUse || t == UserPromptSubmit
	case Fail, Stop:
		return true
	}
	return false
}
