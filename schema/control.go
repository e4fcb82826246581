package schema

// The codes of a [ControlError].
const (
	// CodeBadRequest: the request can not be understood; send another one.
	CodeBadRequest = "bad_request"
	// CodeNotFound: what the request is about does not exist.
	CodeNotFound = "not_found"
	// CodeConflict: it contradicts what is there; read again, then decide.
	CodeConflict = "conflict"
	// CodeTooOld: its number was used up long ago; nobody remembers for what.
	CodeTooOld = "too_old"
	// CodeUnavailable: it can not be served now, or not by this version.
	CodeUnavailable = "unavailable"
	// CodeInternal: the fabric failed; the request may be repeated.
	CodeInternal = "internal"
)

// A ControlError is the answer to a control request that could not be served.
// It is the body of a reply that carries [HeaderServiceError].
type ControlError struct {
	// Code is for programs: one of the Code constants. Treat one that is not
	// known as [CodeInternal].
	Code string `json:"code"`
	// Message is a sentence for people.
	Message string `json:"message"`
	// RetryAfter is when the same request may be served; 0: nobody knows.
	RetryAfter Duration `json:"retry_after,omitzero"`
}

func (e *ControlError) Error() string { return e.Message }

// The headers of a control reply that is an error, as the NATS micro framework
// sets them, so that its tools count and show them.
const (
	// HeaderServiceError is the message.
	HeaderServiceError = "Nats-Service-Error"
	// HeaderServiceErrorCode is the code.
	HeaderServiceErrorCode = "Nats-Service-Error-Code"
)

// A StatusRequest is the request of the control verb "status".
type StatusRequest struct {
	// Shadow asks for what shadow hooks would have changed, of all brokers.
	Shadow bool `json:"shadow,omitzero"`
	// Agents asks for the agents that were seen lately.
	Agents bool `json:"agents,omitzero"`
	// Host leaves out agents of other machines; empty: all.
	Host string `json:"host,omitzero"`
}

// MaxAgents is how many agents a status lists; those that are silent for the
// longest come first, and those whose sessions ended last.
const MaxAgents = 1000

// An AgentStatus is an agent that was seen lately.
type AgentStatus struct {
	Agent   string `json:"agent"`
	Session string `json:"session,omitzero"`
	Runtime string `json:"runtime,omitzero"`
	// Version is the runtime's, Host the machine's name; empty: nobody said.
	Version string `json:"version,omitzero"`
	Host    string `json:"host,omitzero"`
	// Silent is how long ago it was seen, which is written every two minutes.
	Silent Duration `json:"silent"`
	// Ended: its session ended, and nothing was heard since.
	Ended bool `json:"ended,omitzero"`
}

// FabricStatus is the answer to the control request "status".
type FabricStatus struct {
	// Fabric is the fabric's id; empty while the broker has no state yet.
	Fabric string `json:"fabric"`
	// Version is the broker's program version.
	Version string `json:"version"`
	// ConfigVersion is the active configuration's; 0: none was applied.
	ConfigVersion uint64 `json:"config_version"`
	// Ready says whether the broker takes events.
	Ready bool `json:"ready"`
	// Trouble is why the broker can not do all of what it is for; empty: it can.
	Trouble string `json:"trouble,omitzero"`
	// Hooks counts those of the active configuration.
	Hooks int `json:"hooks"`
	// InFlight counts the broker's calls under way.
	InFlight int `json:"in_flight"`
	// Pools are all pools that some hook names or some worker serves.
	Pools []PoolStatus `json:"pools"`
	// LoadErrors are handlers that some worker could not load, by hook name.
	LoadErrors map[string]string `json:"load_errors,omitzero"`
	// Pending counts what waits for agents, by source.
	Pending map[string]int `json:"pending,omitzero"`
	// OldestPending is how long the oldest of it has waited that is for one agent.
	OldestPending Duration `json:"oldest_pending,omitzero"`
	// BlockedRounds counts the agents that may only use terminal tools.
	BlockedRounds int `json:"blocked_rounds,omitzero"`
	// Frozen are the freezes that stand, as this broker knows them.
	Frozen []Freeze `json:"frozen,omitzero"`
	// Limited are those that asked the broker for more than one agent may take, in the
	// last minute, first who did most often; at most 64.
	Limited []LimitedStatus `json:"limited,omitzero"`
	// Agents are those that were seen lately, if the request asks for them, and
	// AgentsSeen is how many there are, listed or not.
	Agents     []AgentStatus `json:"agents,omitzero"`
	AgentsSeen int           `json:"agents_seen,omitzero"`
	// AgentsCrowded: there was no room for all, so that who was silent for the
	// longest may be missing.
	AgentsCrowded bool `json:"agents_crowded,omitzero"`
	// Brokers are all brokers of the fabric.
	Brokers []BrokerStatus `json:"brokers,omitzero"`
	// Shadow is what shadow hooks would have changed, if that was asked for.
	Shadow []ShadowStatus `json:"shadow,omitzero"`
}

// A LimitedStatus is an agent, or a producer, that was over a limit.
type LimitedStatus struct {
	Name string `json:"name"`
	// Limit is "rate" (events a second), "calls" (calls under way) or "requests" (control
	// requests, of it or about it).
	Limit string `json:"limit"`
	// Refused is how much was not judged, or not served, since it began to be so.
	Refused int `json:"refused"`
	// Since is how long ago that was, Last how long ago the last time.
	Since Duration `json:"since"`
	Last  Duration `json:"last"`
}

// BrokerStatus is what a broker says of itself.
type BrokerStatus struct {
	Broker string `json:"broker"`
	// ConfigVersion is the version that its new calls are pinned to.
	ConfigVersion uint64 `json:"config_version"`
	// Candidate is the version that is to become active, once it has it ready.
	Candidate *Candidate `json:"candidate,omitzero"`
	// FreezeVersion is the version of the freezes that it goes by.
	FreezeVersion uint64 `json:"freeze_version,omitzero"`
	// RealmUnreadable: it can not read who may use the fabric, and goes by what it knew
	// before, so that who is revoked stays in.
	RealmUnreadable bool `json:"realm_unreadable,omitzero"`
}

// ShadowStatus is how often a shadow hook would have changed the verdict.
type ShadowStatus struct {
	Hook   string        `json:"hook"`
	Counts []ShadowCount `json:"counts"`
}

// ShadowCount counts calls by what was decided, and what would have been if the
// shadow hook had counted.
type ShadowCount struct {
	Decided Decision `json:"decided"`
	Would   Decision `json:"would"`
	Count   uint64   `json:"count"`
	// Last is the last such event and Reason what the hook said about it.
	Last   string `json:"last,omitzero"`
	Reason string `json:"reason,omitzero"`
}

// PoolStatus is one pool and who serves it; no workers: nobody does.
type PoolStatus struct {
	Pool    string         `json:"pool"`
	Workers []WorkerStatus `json:"workers"`
}

// WorkerStatus is one worker as a broker sees it by its beats.
type WorkerStatus struct {
	Worker   string   `json:"worker"`
	InFlight int      `json:"in_flight"`
	Capacity int      `json:"capacity"`
	Draining bool     `json:"draining,omitzero"`
	Silent   bool     `json:"silent,omitzero"`
	Versions []uint64 `json:"versions,omitzero"`
	// Candidate is what it says of the version that is to become active.
	Candidate *Candidate `json:"candidate,omitzero"`
}
