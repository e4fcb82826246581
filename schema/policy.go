package schema

import "time"

// The verbs that let shims decide while no broker answers.
const (
	// VerbPolicy returns what fail-closed hooks guard.
	VerbPolicy = "policy"
	// VerbRecord reports calls that no broker judged.
	VerbRecord = "record"
)

// A Policy is what a shim needs to know of one version of the configuration: which calls must
// not pass while no broker answers, and which hooks need the native payload or the
// conversation. It contains no handlers and no conditions. A shim treats each condition as
// true.
type Policy struct {
	// Fabric is the id of the fabric. ConfigVersion is the version that the policy was made
	// from.
	Fabric        string `json:"fabric"`
	ConfigVersion uint64 `json:"config_version"`
	// Coarse reports that the broker simplified a policy that was too large. It guards more
	// calls than its version, never fewer.
	Coarse bool `json:"coarse,omitzero"`
	// Hooks lists the hooks that guard, the hooks that need the native payload or the
	// conversation, and the hooks that these yield to. They are in registration order.
	Hooks []PolicyHook `json:"hooks"`
	// Overrides lists the events whose global hooks some agents drop.
	Overrides []Override `json:"overrides,omitzero"`
	// FreezeVersion counts the changes of the freezes. Freezes lists the active ones. Terminal
	// lists the tools that they let pass. A freeze refuses calls no matter which hooks there
	// are.
	FreezeVersion uint64   `json:"freeze_version,omitzero"`
	Freezes       []Freeze `json:"freezes,omitzero"`
	Terminal      []string `json:"terminal,omitzero"`
}

// A PolicyHook is the part of a hook that a shim needs: when it runs, and whether it guards.
type PolicyHook struct {
	// Hook is the hook's name.
	Hook string `json:"hook"`
	// Event, Agent, Matcher and System are those of the [Hook].
	Event   EventType `json:"event"`
	Agent   string    `json:"agent,omitzero"`
	Matcher string    `json:"matcher,omitzero"`
	System  bool      `json:"system,omitzero"`
	// Like is equal for hooks with the same handler, and has no other meaning. A preset's hook
	// yields to other hooks of its event with the same Like.
	Like   string `json:"like,omitzero"`
	Preset bool   `json:"preset,omitzero"`
	// Guards reports that calls must not pass without this hook's judgement.
	Guards bool `json:"guards,omitzero"`
	// Native reports that the hook needs the runtime's own payload.
	Native bool `json:"native,omitzero"`
	// History reports that the hook needs the conversation.
	History bool `json:"history,omitzero"`
}

// MaxPolicy limits the JSON of a [Policy], in bytes. Shims read it at every call.
const MaxPolicy = 128 << 10

// A PolicyRequest asks for the policy of the active version.
type PolicyRequest struct {
	// Nonce is a text of at most 64 bytes that the client never used before; absent: the answer
	// need not prove that it is fresh.
	Nonce string `json:"nonce,omitzero"`
}

// MaxNonce limits [PolicyRequest].Nonce, in bytes.
const MaxNonce = 64

// A PolicyAnswer is a policy, signed with the key that all brokers of the fabric share.
type PolicyAnswer struct {
	// Document is the JSON of a [Policy], exactly as signed.
	Document string `json:"document"`
	// Signature is the ed25519 signature of exactly these bytes. Key is the public key to check
	// it with. A shim that knows another key of this fabric must reject the answer.
	Signature []byte `json:"signature"`
	Key       []byte `json:"key"`
	// Fresh is the signature of the request's nonce and the document. It proves that the
	// version was active at the time of the request. Absent: the request had no nonce.
	Fresh []byte `json:"fresh,omitzero"`
}

// The limits of a [RecordRequest].
const (
	// MaxUnjudged is how many calls one request may report.
	MaxUnjudged = 100
	// MaxWhy limits the length of a reason, in bytes.
	MaxWhy = 512
)

// A RecordRequest reports calls of the subject's agent that no broker judged. The broker counts
// each event id once.
type RecordRequest struct {
	Calls []Unjudged `json:"calls"`
}

// An Unjudged is a call that a shim decided because no broker answered. It contains nothing of
// the tool's input.
type Unjudged struct {
	// EventID is a UUID; required.
	EventID string    `json:"event_id"`
	Time    time.Time `json:"time"`
	// Agent is the agent of the call. In a request, the agent of the subject counts instead.
	Agent   string    `json:"agent,omitzero"`
	Session string    `json:"session,omitzero"`
	Event   EventType `json:"event,omitzero"`
	Tool    string    `json:"tool,omitzero"`
	// Decision is the shim's decision: deny, fail, or continue if the call passed.
	Decision Decision `json:"decision,omitzero"`
	// Why says why no broker judged the call, and why the shim decided as it did.
	Why string `json:"why,omitzero"`
	// ConfigVersion is the version of the policy that the shim knew; 0: no policy.
	ConfigVersion uint64 `json:"config_version,omitzero"`
	// Lost is the number of earlier calls that the shim dropped because there were too many.
	// All other members except the id and the time are then absent.
	Lost int `json:"lost,omitzero"`
}

// A RecordAnswer confirms that the broker has recorded all calls.
type RecordAnswer struct {
	// Fabric is the id of the fabric that recorded them.
	Fabric string `json:"fabric"`
	// Known is the number of calls that the fabric had recorded before.
	Known int `json:"known,omitzero"`
}
