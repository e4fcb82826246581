package schema

// The verbs of control requests about the queue and the rounds.
const (
	VerbStatus     = "status"
	VerbInject     = "inject"
	VerbPending    = "pending"
	VerbWithdraw   = "withdraw"
	VerbAck        = "ack"
	VerbDrain      = "drain"
	VerbFetch      = "fetch"
	VerbAnswer     = "answer"
	VerbRelay      = "relay"
	VerbMode       = "mode"
	VerbCheckpoint = "checkpoint"
	VerbRound      = "round"
)

// An InjectRequest puts an item into the queue. On an agent's subject the item is for that
// agent. On `_` it is for a session or for all agents.
type InjectRequest struct {
	// Session addresses all agents of a session.
	Session string `json:"session,omitzero"`
	// All addresses all agents.
	All bool `json:"all,omitzero"`
	// Content is the text. Object locates a text that is too large to send.
	Content string  `json:"content,omitzero"`
	Object  *Object `json:"object,omitzero"`
	// Source is the author; absent: human, or the source of the structured form.
	Source string `json:"source,omitzero"`
	// Strategy is the place where the agent reads the text; absent: tool_result.
	Strategy Strategy `json:"strategy,omitzero"`
	// Matcher selects the tools after whose calls the fabric may deliver the item; absent: any
	// tool.
	Matcher string `json:"matcher,omitzero"`
	// TTL is how long the item may wait; absent: without a limit for one agent, 24h for
	// several.
	TTL Duration `json:"ttl,omitzero"`
	// Producer numbers its items in Number, or names them in Key, so that the fabric detects a
	// repeated request. Without both, each request adds an item.
	Producer string `json:"producer,omitzero"`
	Number   uint64 `json:"number,omitzero"`
	Key      string `json:"key,omitzero"`
	// LateJoiners delivers the item also to agents that the fabric first sees later.
	LateJoiners bool `json:"late_joiners,omitzero"`
	// Subagent and Background are structured results. Send one of them instead of content.
	Subagent   *SubagentResult   `json:"subagent,omitzero"`
	Background *BackgroundResult `json:"background,omitzero"`
}

// A Receipt confirms a queued item.
type Receipt struct {
	Key string `json:"key"`
	// Sequence is the item's place among all items; 0: no longer known.
	Sequence uint64 `json:"sequence,omitzero"`
	// Duplicate reports that the fabric had accepted the item before, and stored nothing now.
	Duplicate bool `json:"duplicate,omitzero"`
	// State is the item's current state.
	State ItemState `json:"state"`
}

// A PendingRequest lists waiting items: those of the subject's agent, or on `_` all.
type PendingRequest struct {
	// Limit is how many items to list; 0: 1000.
	Limit int `json:"limit,omitzero"`
}

// PendingAnswer lists the waiting items in order.
type PendingAnswer struct {
	Items []PendingItem `json:"items"`
	// Total is the number of waiting items, listed or not.
	Total int `json:"total"`
}

// A PendingItem is an item without its content.
type PendingItem struct {
	Key      string    `json:"key"`
	Sequence uint64    `json:"sequence"`
	Scope    Scope     `json:"scope,omitzero"`
	Source   string    `json:"source"`
	Strategy Strategy  `json:"strategy"`
	State    ItemState `json:"state"`
	// Event is the event that leased the item; empty: the item is not leased.
	Event string `json:"event,omitzero"`
	// Length is the content's length in bytes.
	Length int64 `json:"length"`
	// Age is how long the item has waited. ExpiresIn is how long it may still wait; absent:
	// without a limit.
	Age       Duration `json:"age"`
	ExpiresIn Duration `json:"expires_in,omitzero"`
	Matcher   string   `json:"matcher,omitzero"`
	// Delivered is the number of agents that received the item, if it is for several.
	Delivered int `json:"delivered,omitzero"`
}

// A WithdrawRequest withdraws an item that no event has leased yet.
type WithdrawRequest struct {
	Key string `json:"key"`
}

// WithdrawAnswer returns the item's state: withdrawn, or an earlier final state.
type WithdrawAnswer struct {
	Key   string    `json:"key"`
	State ItemState `json:"state"`
	// Delivered is the number of agents that had already received the item, if it is for
	// several.
	Delivered int `json:"delivered,omitzero"`
}

// An AckRequest acknowledges the delivery of the injections of some events.
type AckRequest struct {
	// Fabric is the fabric of the verdicts. A request for another fabric changes nothing.
	Fabric string `json:"fabric"`
	// Events lists the ids of the events.
	Events []string `json:"events"`
	// Hold renews the leases instead of acknowledging, because delivery is still to come.
	Hold bool `json:"hold,omitzero"`
	// Release, set together with Hold, ends the leases instead of renewing them, so that the
	// undelivered items are due again at once. A broker that does not know Release renews the
	// leases.
	Release bool `json:"release,omitzero"`
}

// A DrainRequest leases all items that wait for the subject's agent.
type DrainRequest struct {
	// EventID is the id of the lease, for the acknowledgement. Required.
	EventID string `json:"event_id"`
	// Session is the runtime's session.
	Session string `json:"session,omitzero"`
	// One leases only the next item. Clients use it when they can deliver only one, and choose
	// the tool call after which the agent reads it.
	One bool `json:"one,omitzero"`
}

// DrainAnswer contains the leased items, as one message and in parts.
type DrainAnswer struct {
	Fabric  string `json:"fabric"`
	EventID string `json:"event_id"`
	// Content is the items as one message of the user; empty: no item waited.
	Content    string      `json:"content,omitzero"`
	Injections []Injection `json:"injections,omitzero"`
	Workspaces []Workspace `json:"workspaces,omitzero"`
	// Remaining is the number of items that did not fit. Drain again after acknowledging this
	// answer.
	Remaining int `json:"remaining,omitzero"`
	// Matcher and Sequence are those of the item, if the request set One. Matcher selects the
	// tools after whose calls the agent may read it; empty: any tool.
	Matcher  string `json:"matcher,omitzero"`
	Sequence uint64 `json:"sequence,omitzero"`
	// ExpiresIn is how long the item may still wait, if the request set One; 0: without a
	// limit.
	ExpiresIn Duration `json:"expires_in,omitzero"`
}

// A FetchRequest asks for a part of an object that an item of the subject's agent names.
type FetchRequest struct {
	Digest string `json:"digest"`
	// Session is the runtime's session. Its items may name the object, too.
	Session string `json:"session,omitzero"`
	Offset  int64  `json:"offset,omitzero"`
}

// FetchAnswer contains that part.
type FetchAnswer struct {
	// Data is the part, in base64.
	Data []byte `json:"data"`
	// Size is the size of the whole object, in bytes.
	Size int64 `json:"size"`
}

// An AnswerRequest delivers the answer of the subject's agent to the other agents of its
// session. Agents send it with [VerbAnswer]. Operators and orchestrators send it for an agent
// with [VerbRelay].
type AnswerRequest struct {
	Session string `json:"session"`
	// Label is the author's anonymised name and the answer's number, such as agent2.1; absent:
	// the fabric assigns it.
	Label   string  `json:"label,omitzero"`
	Content string  `json:"content,omitzero"`
	Object  *Object `json:"object,omitzero"`
	// Workspace is the path of the author's workspace in the answer's text. Snapshot is its
	// content.
	Workspace string  `json:"workspace,omitzero"`
	Snapshot  *Object `json:"snapshot,omitzero"`
}

// An AnswerReceipt confirms an answer, with the name and label that the other agents read.
type AnswerReceipt struct {
	Receipt
	Name  string `json:"name"`
	Label string `json:"label"`
}

// A ModeRequest sets how other agents' answers reach the subject's agent, or asks for it.
type ModeRequest struct {
	// VoteOnly delivers answers by a restart, because the agent's tools were fixed at the start
	// of its turn; absent: change nothing.
	VoteOnly *bool `json:"vote_only,omitzero"`
}

// A ModeAnswer is the agent's mode after the request.
type ModeAnswer struct {
	VoteOnly bool `json:"vote_only"`
}

// The actions of a [RoundRequest].
const (
	RoundStart  = "start"
	RoundShow   = "show"
	RoundWrapUp = "wrapup"
)

// DefaultGrace is the grace of a round that starts without one.
const DefaultGrace = Duration(2 * 60 * 1e9)

// A RoundRequest starts, shows or wraps up the round of the subject's agent.
type RoundRequest struct {
	// Action is start, show or wrapup; absent: show.
	Action string `json:"action,omitzero"`
	// Initial, Subsequent and Grace are the limits of the new round; absent: those of the
	// previous round. The first grace is 2m.
	Initial    *Duration `json:"initial,omitzero"`
	Subsequent *Duration `json:"subsequent,omitzero"`
	Grace      *Duration `json:"grace,omitzero"`
	// Number is the new round's number; absent: one more than the previous round's, at first 0.
	Number *int `json:"number,omitzero"`
}
