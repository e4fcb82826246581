package schema

import "time"

// The verbs about what shims do while nobody answers them.
const (
	// VerbPolicy asks what fail-closed hooks guard.
	VerbPolicy = "policy"
	// VerbRecord hands in what nobody judged.
	VerbRecord = "record"
)

// A Policy is what a shim has to know of one version of the configuration: which
// calls must not pass while nobody of the fabric answers, and which hooks need
// what the runtime said, or the conversation. It holds no handlers and no conditions; a condition
// counts as true.
type Policy struct {
	// Fabric is whose it is, ConfigVersion which version it was made from.
	Fabric        string `json:"fabric"`
	ConfigVersion uint64 `json:"config_version"`
	// Coarse: there was too much to say. It guards more than the version it was
	// made from, and never less.
	Coarse bool `json:"coarse,omitzero"`
	// Hooks are those that guard, those that need the native payload or the
	// conversation, and those that one of them yields to; in registration order.
	Hooks []PolicyHook `json:"hooks"`
	// Overrides are the events whose global hooks some agents drop.
	Overrides []Override `json:"overrides,omitzero"`
	// FreezeVersion counts how often agents were frozen or thawed, Freezes are those
	// that stand, and Terminal the tools that pass all the same. What a freeze
	// refuses is refused whatever the hooks are.
	FreezeVersion uint64   `json:"freeze_version,omitzero"`
	Freezes       []Freeze `json:"freezes,omitzero"`
	Terminal      []string `json:"terminal,omitzero"`
}

// A PolicyHook is what of a hook decides at which calls it is asked, and what
// that means when nobody is there.
type PolicyHook struct {
	// Hook is its name.
	Hook string `json:"hook"`
	// Event, Agent, Matcher and System are as in [Hook].
	Event   EventType `json:"event"`
	Agent   string    `json:"agent,omitzero"`
	Matcher string    `json:"matcher,omitzero"`
	System  bool      `json:"system,omitzero"`
	// Like is the same for hooks that run the same handler; it says nothing else. A
	// hook of a preset yields to the others of its event that are like it.
	Like   string `json:"like,omitzero"`
	Preset bool   `json:"preset,omitzero"`
	// Guards: the calls it is asked about must not pass unjudged.
	Guards bool `json:"guards,omitzero"`
	// Native: it needs the runtime's own payload.
	Native bool `json:"native,omitzero"`
	// History: it needs the conversation.
	History bool `json:"history,omitzero"`
}

// MaxPolicy bounds the JSON of a [Policy]: shims read it at every call.
const MaxPolicy = 128 << 10

// A PolicyRequest asks for the policy of the active version.
type PolicyRequest struct {
	// Nonce is any text of at most 64 bytes that was never used before; absent:
	// it does not matter whether the answer is fresh.
	Nonce string `json:"nonce,omitzero"`
}

// MaxNonce bounds [PolicyRequest].Nonce.
const MaxNonce = 64

// A PolicyAnswer is a policy, signed by the key that all brokers of the fabric share.
type PolicyAnswer struct {
	// Document is the JSON of a [Policy], as it was signed.
	Document string `json:"document"`
	// Signature is the ed25519 signature of exactly these bytes, and Key the public
	// key that it is checked with. Who has seen another key of this fabric before
	// must not believe it.
	Signature []byte `json:"signature"`
	Key       []byte `json:"key"`
	// Fresh signs the request's nonce with the document: the version was active
	// when it was asked for. Absent: no nonce was sent.
	Fresh []byte `json:"fresh,omitzero"`
}

// The bounds of a [RecordRequest].
const (
	// MaxUnjudged is how many calls one request hands in.
	MaxUnjudged = 100
	// MaxWhy is how long a reason may be, in bytes.
	MaxWhy = 512
)

// A RecordRequest hands in calls of the subject's agent that nobody judged. One
// that was handed in before, by the event's id, counts once.
type RecordRequest struct {
	Calls []Unjudged `json:"calls"`
}

// An Unjudged is a call that a shim decided about because nobody answered it. It
// holds nothing of what the tool was called with.
type Unjudged struct {
	// EventID is a UUID; required.
	EventID string    `json:"event_id"`
	Time    time.Time `json:"time"`
	// Agent is whose call it was. In a request, that of the subject counts.
	Agent   string    `json:"agent,omitzero"`
	Session string    `json:"session,omitzero"`
	Event   EventType `json:"event,omitzero"`
	Tool    string    `json:"tool,omitzero"`
	// Decision is what became of it: deny, fail, or continue where it passed.
	Decision Decision `json:"decision,omitzero"`
	// Why says why nobody judged, and why it was decided so.
	Why string `json:"why,omitzero"`
	// ConfigVersion is the version of the policy that was known; 0: none was.
	ConfigVersion uint64 `json:"config_version,omitzero"`
	// Lost counts such calls of before that were forgotten because there were too
	// many; the rest is absent then, but for the id and the time.
	Lost int `json:"lost,omitzero"`
}

// A RecordAnswer says that all of it is known now.
type RecordAnswer struct {
	// Fabric is who knows it.
	Fabric string `json:"fabric"`
	// Known counts those that were handed in before.
	Known int `json:"known,omitzero"`
}
