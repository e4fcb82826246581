package schema

import "time"

// The sources of injections that the fabric knows. Any other word of up to 64
// characters is a source as well.
const (
	SourceHuman      = "human"
	SourcePeer       = "peer"
	SourceSubagent   = "subagent"
	SourceBackground = "background"
	SourceReminder   = "reminder"
	SourceTimeout    = "timeout"
)

// MaxText is the longest text that one item may have, in bytes. Agents' sides
// fetch no longer one: it would be handed over never and hold back all that
// comes after it.
const MaxText = 64 << 20

// ItemState is what became of an item.
type ItemState string

// The states of an item. It is queued until an event takes it along, leased
// until the shim says that it handed it over, and ends in one of the others.
const (
	Queued    ItemState = "queued"
	Leased    ItemState = "leased"
	Delivered ItemState = "delivered"
	Expired   ItemState = "expired"
	Withdrawn ItemState = "withdrawn"
)

// A Scope is for whom an item is: one agent, all agents of a session, or, as
// the zero Scope, all agents.
type Scope struct {
	Agent   string `json:"agent,omitzero"`
	Session string `json:"session,omitzero"`
}

// An Item is content that waits for agents. It is written once and never
// changes; what became of it stands elsewhere.
type Item struct {
	// Scope, Producer, Number and Name make the item's key, and are not stored
	// beside it. An item has a number, which its producer counts, or a name.
	Scope    Scope  `json:"-"`
	Producer string `json:"-"`
	Number   uint64 `json:"-"`
	Name     string `json:"-"`
	// Key is the item's key in its bucket.
	Key string `json:"-"`
	// Sequence is its place among all items, given when it was accepted.
	Sequence uint64 `json:"-"`
	// Accepted is when that was, by the server's clock.
	Accepted time.Time `json:"-"`

	// Source says who wrote it: human, peer, subagent, …
	Source string `json:"source"`
	// Strategy is where it goes.
	Strategy Strategy `json:"strategy"`
	// Content is the text. It is empty where the structured form below holds
	// everything, or where the text lies in the object store.
	Content string `json:"content,omitzero"`
	// Object is where the text lies if it is too large for a message.
	Object *Object `json:"object,omitzero"`
	// Matcher picks the tools after whose calls it may be delivered; empty: any
	// moment will do.
	Matcher string `json:"matcher,omitzero"`
	// Expiry is how long it may wait; 0: for ever. Only an agent's own items
	// may wait for ever.
	Expiry Duration `json:"expiry,omitzero"`
	// LateJoiners: agents that are first seen after it was accepted get it, too.
	LateJoiners bool `json:"late_joiners,omitzero"`
	// Except is an agent that does not get it: who wrote it.
	Except string `json:"except,omitzero"`

	// One of these at most is there: the structured form.
	Answer     *PeerAnswer       `json:"answer,omitzero"`
	Subagent   *SubagentResult   `json:"subagent,omitzero"`
	Background *BackgroundResult `json:"background,omitzero"`
	TimeLimit  *TimeLimit        `json:"time_limit,omitzero"`
}

// Length is the length of what an agent is told, in bytes, without what is put around it.
func (it *Item) Length() int64 {
	n := int64(len(it.Content))
	if it.Object != nil {
		n += it.Object.Size
	}
	if s := it.Subagent; s != nil {
		n += int64(len(s.Answer) + len(s.Error))
	}
	if b := it.Background; b != nil {
		n += int64(len(b.Result) + len(b.Error))
	}
	return n
}

// An Object is content in the object store, named by what it is.
type Object struct {
	// Digest is "sha256-" and the hex digits of its SHA-256.
	Digest string `json:"digest"`
	// Size is its length in bytes.
	Size int64 `json:"size"`
}

// A PeerAnswer is one agent's answer, as the others of its session see it.
type PeerAnswer struct {
	// Name is the author's anonymised name, such as agent2.
	Name string `json:"name"`
	// Label is the answer's, such as agent2.1.
	Label string `json:"label"`
	// Workspace is the path that the answer calls the author's workspace by.
	Workspace string `json:"workspace,omitzero"`
	// Snapshot is what was in it when the answer was given; nil: it was not shared.
	Snapshot *Object `json:"snapshot,omitzero"`
}

// A SubagentResult is what came of a subagent that ran in the background, also
// if it failed or ran out of time.
type SubagentResult struct {
	ID string `json:"id"`
	// Status is completed, failed, timeout, cancelled, …
	Status string `json:"status"`
	// Answer is what it said; Error is what went wrong.
	Answer string `json:"answer,omitzero"`
	Error  string `json:"error,omitzero"`
	// Took is how long it ran.
	Took Duration `json:"took,omitzero"`
	// Workspace is where its files are.
	Workspace string `json:"workspace,omitzero"`
	// InputTokens and OutputTokens are what it used; 0: not known.
	InputTokens  int64 `json:"input_tokens,omitzero"`
	OutputTokens int64 `json:"output_tokens,omitzero"`
	// Completion says how far it came, from 1 to 100; 0: not known.
	Completion int `json:"completion,omitzero"`
}

// A BackgroundResult is what came of a tool that ran in the background.
type BackgroundResult struct {
	ID     string `json:"id"`
	Tool   string `json:"tool"`
	Status string `json:"status"`
	Result string `json:"result,omitzero"`
	Error  string `json:"error,omitzero"`
}

// A TimeLimit is what a soft time-out tells the agent.
type TimeLimit struct {
	// Round counts from 0.
	Round int `json:"round"`
	// Limit is the round's soft limit; nil: it has none, and was wrapped up.
	Limit *Duration `json:"limit,omitzero"`
	// Elapsed is how long the round ran.
	Elapsed Duration `json:"elapsed"`
	// Grace is what is left after the agent has read this.
	Grace Duration `json:"grace"`
	// WrapUp: an operator asked for it, no clock did.
	WrapUp bool `json:"wrap_up,omitzero"`
	// Terminal are the tools that stay allowed after the grace.
	Terminal []string `json:"terminal,omitzero"`
}

// Peers is what an agent's cursor remembers of the other agents' answers.
type Peers struct {
	// Seen is the label of the newest answer that the agent was given, by the
	// author's name.
	Seen map[string]string `json:"seen,omitzero"`
	// Round is the revision of the round's start in which Updates were counted.
	Round uint64 `json:"round,omitzero"`
	// Updates counts the updates of that round.
	Updates int `json:"updates,omitzero"`
	// VoteOnly: answers reach the agent by a restart.
	VoteOnly bool `json:"vote_only,omitzero"`
	// Checkpoint: answers up to this sequence need not be deferred any more,
	// since the agent was started anew after they came.
	Checkpoint uint64 `json:"checkpoint,omitzero"`
	// Answers counts the agent's own, and Checked is the one for which a checklist was accepted
	// first, counted from 1; 0: none was.
	Answers int `json:"answers,omitzero"`
	Checked int `json:"checked,omitzero"`
}

// A Receiver is the agent that a delivery hook chooses and renders for.
type Receiver struct {
	Routing
	// Peers is what its cursor remembers, as it was before the event.
	Peers Peers
	// Round is the agent's round; nil: it has none.
	Round *Round
}

// Handout is what a delivery hook made of the items it was given.
type Handout struct {
	Injections []Injection
	// Restart asks for a new turn instead of telling the agent in this one.
	Restart *Restart
	// Workspaces are the snapshots that the texts name.
	Workspaces []Workspace
	// Retry has the agent go on with it instead of ending its turn; it says nothing
	// but at BeforeFinalResponse.
	Retry bool
}

// A Workspace is a snapshot that must be unpacked before a text that names it
// is handed over. Agents' sides do that and put the path where they did in the
// place of Path.
type Workspace struct {
	// Name is the folder's: the author's anonymised name.
	Name string `json:"name"`
	// Path stands for the folder in the texts of the verdict.
	Path string `json:"path"`
	// Snapshot is the content, a compressed tar.
	Snapshot Object `json:"snapshot"`
}

// WorkspacePath is what stands in texts for the folder of that name.
func WorkspacePath(name string) string { return "hookfabric:temp_workspaces/" + name }

// A Round is an agent's current attempt, at the moment it was looked at. No
// time of it is one of a clock.
type Round struct {
	// Agent is whose round it is.
	Agent string `json:"agent"`
	// Start is the revision of its start, which names the round for ever.
	Start uint64 `json:"start"`
	// Number counts from 0.
	Number int `json:"number"`
	// Initial and Subsequent are the soft limits of round 0 and of later ones;
	// nil: none.
	Initial    *Duration `json:"initial,omitzero"`
	Subsequent *Duration `json:"subsequent,omitzero"`
	// Grace is what is left after the soft warning was handed over.
	Grace Duration `json:"grace"`
	// Elapsed is how long the round has been going on.
	Elapsed Duration `json:"elapsed"`
	// WrapUp: somebody asked the agent to come to an end.
	WrapUp bool `json:"wrap_up,omitzero"`
	// Warned: the soft warning was handed over, Since ago.
	Warned bool     `json:"warned,omitzero"`
	Since  Duration `json:"since,omitzero"`
	// Denials counts the calls refused one after the other.
	Denials int `json:"denials,omitzero"`
	// Terminate: there were so many that the run is to end.
	Terminate bool `json:"terminate,omitzero"`
}

// Limit is the soft limit that holds in the round; nil: none.
func (r *Round) Limit() *Duration {
	if r.Number == 0 {
		return r.Initial
	}
	return r.Subsequent
}

// SoftDue reports whether the agent is to be warned.
func (r *Round) SoftDue() bool {
	limit := r.Limit()
	return !r.Warned && (r.WrapUp || limit != nil && r.Elapsed >= *limit)
}

// Blocked reports whether only terminal tools may be used: the warning was
// handed over and the grace is over, or the run is to end.
func (r *Round) Blocked() bool { return r.Terminate || r.Warned && r.Since >= r.Grace }
