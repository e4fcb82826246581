package schema

// The codes of a [ControlError].
const (
	// CodeBadRequest means that the broker cannot understand the request. Correct it.
	CodeBadRequest = "bad_request"
	// CodeNotFound means that the subject of the request does not exist.
	CodeNotFound = "not_found"
	// CodeConflict means that the request contradicts the stored state. Read the state again,
	// then decide.
	CodeConflict = "conflict"
	// CodeTooOld means that the number was used so long ago that the broker no longer knows for
	// which request.
	CodeTooOld = "too_old"
	// CodeUnavailable means that the broker cannot serve the request now, or that its version
	// cannot.
	CodeUnavailable = "unavailable"
	// CodeInternal means that the fabric failed. The client may repeat the request.
	CodeInternal = "internal"
)

// A ControlError is the answer to a control request that failed. It is the body of a reply that
// carries [HeaderServiceError].
type ControlError struct {
	// Code is one of the Code constants, for programs. Treat an unknown one as [CodeInternal].
	Code string `json:"code"`
	// Message is one sentence for people.
	Message string `json:"message"`
	// RetryAfter is how long to wait before the same request; 0: unknown.
	RetryAfter Duration `json:"retry_after,omitzero"`
}

// Error returns the message.
func (e *ControlError) Error() string { return e.Message }

// The headers of a control reply that is an error. The NATS micro framework sets them, so that
// its tools count and show the errors.
const (
	// HeaderServiceError carries the message.
	HeaderServiceError = "Nats-Service-Error"
	// HeaderServiceErrorCode carries the code.
	HeaderServiceErrorCode = "Nats-Service-Error-Code"
)

// A StatusRequest is the request of the control verb "status".
type StatusRequest struct {
	// Shadow also returns what shadow hooks would have changed, summed over all brokers.
	Shadow bool `json:"shadow,omitzero"`
	// Agents also returns the agents seen in the last day.
	Agents bool `json:"agents,omitzero"`
	// Host limits the agents to those on one machine; empty: all machines.
	Host string `json:"host,omitzero"`
}

// MaxAgents is how many agents a status lists. It lists the longest silent agents first, and
// agents whose session ended last.
const MaxAgents = 1000

// An AgentStatus is one agent that the fabric saw lately.
type AgentStatus struct {
	Agent   string `json:"agent"`
	Session string `json:"session,omitzero"`
	Runtime string `json:"runtime,omitzero"`
	// Version is the version of the agent's runtime. Host is the machine's name. Either is
	// empty if the shim did not report it.
	Version string `json:"version,omitzero"`
	Host    string `json:"host,omitzero"`
	// Silent is the time since the agent's last event. Brokers update it every two minutes.
	Silent Duration `json:"silent"`
	// Ended reports that the agent's session ended, with no event since.
	Ended bool `json:"ended,omitzero"`
}

// FabricStatus is the answer to the control request "status".
type FabricStatus struct {
	// Fabric is the fabric's id. It is empty until the broker has its state.
	Fabric string `json:"fabric"`
	// Version is the broker's program version.
	Version string `json:"version"`
	// ConfigVersion is the version of the active configuration; 0: no configuration yet.
	ConfigVersion uint64 `json:"config_version"`
	// Ready reports whether the broker accepts events.
	Ready bool `json:"ready"`
	// Trouble says why the broker cannot do all of its work; empty: it can.
	Trouble string `json:"trouble,omitzero"`
	// Hooks is the number of hooks in the active configuration.
	Hooks int `json:"hooks"`
	// InFlight is the number of calls that the broker is judging.
	InFlight int `json:"in_flight"`
	// Pools lists every pool that a hook names or a worker serves.
	Pools []PoolStatus `json:"pools"`
	// LoadErrors maps hook names to why some worker cannot load the handler.
	LoadErrors map[string]string `json:"load_errors,omitzero"`
	// Pending counts the items that wait for agents, by source.
	Pending map[string]int `json:"pending,omitzero"`
	// OldestPending is the age of the oldest waiting item for a single agent.
	OldestPending Duration `json:"oldest_pending,omitzero"`
	// BlockedRounds is the number of agents that may only use terminal tools.
	BlockedRounds int `json:"blocked_rounds,omitzero"`
	// Frozen lists the active freezes, as this broker knows them.
	Frozen []Freeze `json:"frozen,omitzero"`
	// Limited lists the agents and producers that exceeded a limit of the broker in the last
	// minute. The most frequent come first; at most 64.
	Limited []LimitedStatus `json:"limited,omitzero"`
	// Agents lists the agents seen lately, if the request asks for them. AgentsSeen is the
	// number of such agents, listed or not.
	Agents     []AgentStatus `json:"agents,omitzero"`
	AgentsSeen int           `json:"agents_seen,omitzero"`
	// AgentsCrowded reports that the broker had no space for all agents. The longest silent
	// ones may be missing.
	AgentsCrowded bool `json:"agents_crowded,omitzero"`
	// Brokers lists all brokers of the fabric.
	Brokers []BrokerStatus `json:"brokers,omitzero"`
	// Shadow lists what shadow hooks would have changed, if the request asks for it.
	Shadow []ShadowStatus `json:"shadow,omitzero"`
}

// A LimitedStatus is an agent, or a producer, that exceeded a limit.
type LimitedStatus struct {
	// Name is an agent's id, a producer, or the name in the credentials. Where the broker does
	// not know these it is the inbox on which the client hears answers.
	Name string `json:"name"`
	// Limit is "rate" (events a second), "calls" (concurrent calls) or "requests" (control
	// requests of the agent or about it).
	Limit string `json:"limit"`
	// Refused is the number of events not judged, or requests not served, since the first
	// refusal.
	Refused int `json:"refused"`
	// Since is the time since the first refusal, Last the time since the latest.
	Since Duration `json:"since"`
	Last  Duration `json:"last"`
}

// BrokerStatus is what a broker reports of itself.
type BrokerStatus struct {
	Broker string `json:"broker"`
	// ConfigVersion is the version that the broker uses for new calls.
	ConfigVersion uint64 `json:"config_version"`
	// Candidate is the version proposed as the next active one, once the broker has tried to
	// load it.
	Candidate *Candidate `json:"candidate,omitzero"`
	// FreezeVersion is the version of the freezes that the broker applies.
	FreezeVersion uint64 `json:"freeze_version,omitzero"`
	// RealmUnreadable reports that the broker cannot read the access list. It uses the last one
	// it read, so that a revoked user keeps access.
	RealmUnreadable bool `json:"realm_unreadable,omitzero"`
}

// ShadowStatus counts how often a shadow hook would have changed the verdict.
type ShadowStatus struct {
	Hook   string        `json:"hook"`
	Counts []ShadowCount `json:"counts"`
}

// ShadowCount counts calls by the actual decision and by the decision with the shadow hook
// counted.
type ShadowCount struct {
	Decided Decision `json:"decided"`
	Would   Decision `json:"would"`
	Count   uint64   `json:"count"`
	// Last is the id of the latest such event. Reason is the hook's reason for it.
	Last   string `json:"last,omitzero"`
	Reason string `json:"reason,omitzero"`
}

// PoolStatus is one pool with its workers. A pool without workers is unserved.
type PoolStatus struct {
	Pool    string         `json:"pool"`
	Workers []WorkerStatus `json:"workers"`
}

// WorkerStatus is one worker, as its beats describe it to a broker.
type WorkerStatus struct {
	Worker   string   `json:"worker"`
	InFlight int      `json:"in_flight"`
	Capacity int      `json:"capacity"`
	Draining bool     `json:"draining,omitzero"`
	Silent   bool     `json:"silent,omitzero"`
	Versions []uint64 `json:"versions,omitzero"`
	// Candidate is what the worker reports about the version proposed as the next active one.
	Candidate *Candidate `json:"candidate,omitzero"`
}
