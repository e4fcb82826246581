package schema

// The verbs of control requests that are about the queue and the rounds.
const (
	VerbInject     = "inject"
	VerbPending    = "pending"
	VerbWithdraw   = "withdraw"
	VerbAck        = "ack"
	VerbDrain      = "drain"
	VerbFetch      = "fetch"
	VerbAnswer     = "answer"
	VerbMode       = "mode"
	VerbCheckpoint = "checkpoint"
	VerbRound      = "round"
)

// An InjectRequest puts an item into the queue. On the subject of an agent it
// is for that agent; on `_` it is for a session or for all.
type InjectRequest struct {
	// Session is for all agents of a session.
	Session string `json:"session,omitzero"`
	// All is for all agents.
	All bool `json:"all,omitzero"`
	// Content is the text; Object is where it lies if it is too large to send.
	Content string  `json:"content,omitzero"`
	Object  *Object `json:"object,omitzero"`
	// Source is who says it; absent: human, or what the structured form is.
	Source string `json:"source,omitzero"`
	// Strategy is where it goes; absent: tool_result.
	Strategy Strategy `json:"strategy,omitzero"`
	// Matcher picks the tools after whose calls it may come; absent: any.
	Matcher string `json:"matcher,omitzero"`
	// TTL is how long it may wait; absent: for ever for an agent's own, else 24h.
	TTL Duration `json:"ttl,omitzero"`
	// Producer counts what it sends in Number, or names it in Key, so that a
	// repeat is noticed; neither: every request is another item.
	Producer string `json:"producer,omitzero"`
	Number   uint64 `json:"number,omitzero"`
	Key      string `json:"key,omitzero"`
	// LateJoiners: agents first seen later get it, too.
	LateJoiners bool `json:"late_joiners,omitzero"`
	// Subagent and Background are results in their structured form, instead of content.
	Subagent   *SubagentResult   `json:"subagent,omitzero"`
	Background *BackgroundResult `json:"background,omitzero"`
}

// A Receipt says what became of an item that was put into the queue.
type Receipt struct {
	Key string `json:"key"`
	// Sequence is its place among all items; 0: no longer known.
	Sequence uint64 `json:"sequence,omitzero"`
	// Duplicate: it was accepted before, and nothing was stored now.
	Duplicate bool `json:"duplicate,omitzero"`
	// State is what became of it so far.
	State ItemState `json:"state"`
}

// A PendingRequest asks what waits. On the subject of an agent it is about that
// agent; on `_` about all.
type PendingRequest struct {
	// Limit bounds the items that are listed; 0: 1000.
	Limit int `json:"limit,omitzero"`
}

// PendingAnswer is what waits, in order.
type PendingAnswer struct {
	Items []PendingItem `json:"items"`
	// Total counts them all, listed or not.
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
	// Event is the event that took it along, if it is leased.
	Event string `json:"event,omitzero"`
	// Length is the content's, in bytes.
	Length int64 `json:"length"`
	// Age is how long it has waited, ExpiresIn how long it still may; absent: for ever.
	Age       Duration `json:"age"`
	ExpiresIn Duration `json:"expires_in,omitzero"`
	Matcher   string   `json:"matcher,omitzero"`
	// Delivered counts the agents that got it, if it is for more than one.
	Delivered int `json:"delivered,omitzero"`
}

// A WithdrawRequest takes back an item that no event has taken along yet.
type WithdrawRequest struct {
	Key string `json:"key"`
}

// WithdrawAnswer says what became of the item: withdrawn, or what it was already.
type WithdrawAnswer struct {
	Key   string    `json:"key"`
	State ItemState `json:"state"`
	// Delivered counts the agents that had got it before, if it was for more than one.
	Delivered int `json:"delivered,omitzero"`
}

// An AckRequest says that the injections of events were handed over.
type AckRequest struct {
	// Fabric is the one whose verdicts they were; another one changes nothing.
	Fabric string `json:"fabric"`
	// Events are the ids of the events.
	Events []string `json:"events"`
	// Hold renews the leases instead: the injections are still to be handed over.
	Hold bool `json:"hold,omitzero"`
}

// A DrainRequest takes along all that waits for the agent of the subject.
type DrainRequest struct {
	// EventID is the id under which it is taken along and acknowledged. Required.
	EventID string `json:"event_id"`
	// Session is the runtime's session.
	Session string `json:"session,omitzero"`
	// One takes along the next item only, for who has room for no more and picks
	// the tool after which the agent is told.
	One bool `json:"one,omitzero"`
}

// DrainAnswer is what was taken along, as one message and by its parts.
type DrainAnswer struct {
	Fabric  string `json:"fabric"`
	EventID string `json:"event_id"`
	// Content is one message of the user; empty: nothing waited.
	Content    string      `json:"content,omitzero"`
	Injections []Injection `json:"injections,omitzero"`
	Workspaces []Workspace `json:"workspaces,omitzero"`
	// Remaining counts what did not fit: drain again after this was acknowledged.
	Remaining int `json:"remaining,omitzero"`
	// Matcher and Sequence are the item's, where only one was asked for. The matcher
	// picks the tools after whose calls the agent is to be told; empty: any.
	Matcher  string `json:"matcher,omitzero"`
	Sequence uint64 `json:"sequence,omitzero"`
}

// A FetchRequest asks for a part of an object that an item of the subject's
// agent names.
type FetchRequest struct {
	Digest string `json:"digest"`
	// Session is the runtime's session, whose items may name the object, too.
	Session string `json:"session,omitzero"`
	Offset  int64  `json:"offset,omitzero"`
}

// FetchAnswer is that part.
type FetchAnswer struct {
	// Data is the part, in base64.
	Data []byte `json:"data"`
	// Size is the whole object's.
	Size int64 `json:"size"`
}

// An AnswerRequest hands the answer of the subject's agent to the others of its session.
type AnswerRequest struct {
	Session string `json:"session"`
	// Label is such as agent2.1: the author's anonymised name and which answer it
	// is; absent: the fabric counts.
	Label   string  `json:"label,omitzero"`
	Content string  `json:"content,omitzero"`
	Object  *Object `json:"object,omitzero"`
	// Workspace is the path that the answer calls the workspace by, Snapshot what is in it.
	Workspace string  `json:"workspace,omitzero"`
	Snapshot  *Object `json:"snapshot,omitzero"`
}

// An AnswerReceipt says under which name and label it goes to the others.
type AnswerReceipt struct {
	Receipt
	Name  string `json:"name"`
	Label string `json:"label"`
}

// A ModeRequest says how answers of others reach the subject's agent.
type ModeRequest struct {
	// VoteOnly: by a restart, because its tools were fixed when its turn began.
	VoteOnly bool `json:"vote_only"`
}

// The actions of a [RoundRequest].
const (
	RoundStart  = "start"
	RoundShow   = "show"
	RoundWrapUp = "wrapup"
)

// DefaultGrace is the grace of a round whose start names none.
const DefaultGrace = Duration(2 * 60 * 1e9)

// A RoundRequest is about the round of the subject's agent.
type RoundRequest struct {
	// Action is start, show or wrapup; absent: show.
	Action string `json:"action,omitzero"`
	// Initial, Subsequent and Grace are the round's; absent at a start: those of
	// the round before; a grace never was: 2m.
	Initial    *Duration `json:"initial,omitzero"`
	Subsequent *Duration `json:"subsequent,omitzero"`
	Grace      *Duration `json:"grace,omitzero"`
	// Number is the new round's; absent: one more than the last one's, first 0.
	Number *int `json:"number,omitzero"`
}
