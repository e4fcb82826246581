package schema

import (
	"maps"
	"strings"
	"time"
)

// The sources of injections that the fabric knows. Producers may use any other word of up to 64
// characters.
const (
	SourceHuman      = "human"
	SourcePeer       = "peer"
	SourceSubagent   = "subagent"
	SourceBackground = "background"
	SourceReminder   = "reminder"
	SourceTimeout    = "timeout"
)

// MaxText is the longest text of one item, in bytes. Clients do not fetch a longer one: it
// could never be delivered, and would hold back all later items.
const MaxText = 64 << 20

// ItemState is the state of a queued item.
type ItemState string

// The states of an item. It is Queued until an event leases it. It is Leased until the shim
// acknowledges its delivery. The other states are final.
const (
	Queued    ItemState = "queued"
	Leased    ItemState = "leased"
	Delivered ItemState = "delivered"
	Expired   ItemState = "expired"
	Withdrawn ItemState = "withdrawn"
)

// A Scope names the receivers of an item: one agent, all agents of a session, or, as the zero
// Scope, all agents.
type Scope struct {
	Agent   string `json:"agent,omitzero"`
	Session string `json:"session,omitzero"`
}

// An Item is content that waits for agents. The fabric writes it once, never changes it, and
// stores its state elsewhere.
type Item struct {
	// Scope, Producer, Number and Name form the item's key and are not stored beside it. An
	// item has either a number, which its producer counts, or a name.
	Scope    Scope  `json:"-"`
	Producer string `json:"-"`
	Number   uint64 `json:"-"`
	Name     string `json:"-"`
	// Key is the item's key in its bucket.
	Key string `json:"-"`
	// Sequence is the item's place among all items. The fabric assigns it on acceptance.
	Sequence uint64 `json:"-"`
	// Accepted is the time of acceptance, by the server's clock.
	Accepted time.Time `json:"-"`

	// Source is the author: human, peer, subagent, …
	Source string `json:"source"`
	// Strategy is the place where the agent reads the text.
	Strategy Strategy `json:"strategy"`
	// Content is the text. It is empty if the structured form below holds everything, or if the
	// text is in the object store.
	Content string `json:"content,omitzero"`
	// Object locates a text that is too large for a message.
	Object *Object `json:"object,omitzero"`
	// Matcher selects the tools after whose calls the fabric may deliver the item; empty: any
	// event.
	Matcher string `json:"matcher,omitzero"`
	// Expiry is how long the item may wait; 0: without a limit, which only items for one agent
	// may have.
	Expiry Duration `json:"expiry,omitzero"`
	// LateJoiners delivers the item also to agents that the fabric first sees later.
	LateJoiners bool `json:"late_joiners,omitzero"`
	// Except is an agent that does not receive the item: its author.
	Except string `json:"except,omitzero"`
	// Author is the agent that queued the item itself, and whose quota it uses. Empty: the
	// fabric, an operator or an orchestrator queued it.
	Author string `json:"author,omitzero"`

	// The structured form. At most one of these is set.
	Answer     *PeerAnswer       `json:"answer,omitzero"`
	Subagent   *SubagentResult   `json:"subagent,omitzero"`
	Background *BackgroundResult `json:"background,omitzero"`
	TimeLimit  *TimeLimit        `json:"time_limit,omitzero"`
}

// Length returns the length of the text in bytes, without its frame.
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

// An Object is content in the object store, addressed by its digest.
type Object struct {
	// Digest is "sha256-" followed by the SHA-256 in hex.
	Digest string `json:"digest"`
	// Size is the content's length in bytes.
	Size int64 `json:"size"`
}

// A PeerAnswer is one agent's answer, as the other agents of its session read it.
type PeerAnswer struct {
	// Name is the author's anonymised name, such as agent2.
	Name string `json:"name"`
	// Label is the answer's label, such as agent2.1.
	Label string `json:"label"`
	// Workspace is the path of the author's workspace in the answer's text.
	Workspace string `json:"workspace,omitzero"`
	// Snapshot is the content of the workspace at the time of the answer; nil: not shared.
	Snapshot *Object `json:"snapshot,omitzero"`
}

// PeerPrefix precedes an author's name, as in peer-agent2, if the name equals the reader's own
// id.
const PeerPrefix = "peer-"

// For returns the answer as the agent with this id reads it. An alias is chosen at the author's
// first answer, and an agent that joins later may have that alias as its id. Without a prefix,
// that agent would take the answer for its own.
func (a *PeerAnswer) For(agent string) *PeerAnswer {
	own, _, _ := strings.Cut(agent, ".") // an id such as agent2.1 is a label of agent2
	if !strings.EqualFold(agent, a.Name) && !strings.EqualFold(own, a.Name) {
		return a
	}
	renamed := *a
	renamed.Name, renamed.Label = PeerPrefix+a.Name, PeerPrefix+a.Label
	return &renamed
}

// A SubagentResult is the result of a subagent that ran in the background, also if it failed or
// timed out.
type SubagentResult struct {
	ID string `json:"id"`
	// Status is completed, failed, timeout, cancelled or another word.
	Status string `json:"status"`
	// Answer is the subagent's answer. Error is its error.
	Answer string `json:"answer,omitzero"`
	Error  string `json:"error,omitzero"`
	// Took is the subagent's running time.
	Took Duration `json:"took,omitzero"`
	// Workspace is the folder of the subagent's files.
	Workspace string `json:"workspace,omitzero"`
	// InputTokens and OutputTokens are the subagent's token counts; 0: unknown.
	InputTokens  int64 `json:"input_tokens,omitzero"`
	OutputTokens int64 `json:"output_tokens,omitzero"`
	// Completion is the progress in percent, from 1 to 100; 0: unknown.
	Completion int `json:"completion,omitzero"`
}

// A BackgroundResult is the result of a tool that ran in the background.
type BackgroundResult struct {
	ID     string `json:"id"`
	Tool   string `json:"tool"`
	Status string `json:"status"`
	Result string `json:"result,omitzero"`
	Error  string `json:"error,omitzero"`
}

// A TimeLimit is the content of a soft time-out warning.
type TimeLimit struct {
	// Round is the number of the round, from 0.
	Round int `json:"round"`
	// Limit is the round's soft limit; nil: the round has no limit, and an operator asked for
	// the wrap-up.
	Limit *Duration `json:"limit,omitzero"`
	// Elapsed is the age of the round.
	Elapsed Duration `json:"elapsed"`
	// Grace is the time that remains after the agent reads the warning.
	Grace Duration `json:"grace"`
	// WrapUp reports that an operator asked for the warning, not a clock.
	WrapUp bool `json:"wrap_up,omitzero"`
	// Terminal lists the tools that stay allowed after the grace.
	Terminal []string `json:"terminal,omitzero"`
}

// Peers is what an agent's cursor stores about the other agents' answers in one session. Round,
// Updates and VoteOnly are the same in all of the agent's sessions.
type Peers struct {
	// Seen maps an author's name to the label of the newest answer that the agent received.
	Seen map[string]string `json:"seen,omitzero"`
	// Round is the revision of the start of the round in which Updates were counted.
	Round uint64 `json:"round,omitzero"`
	// Updates is the number of updates in that round.
	Updates int `json:"updates,omitzero"`
	// VoteOnly delivers answers by a restart.
	VoteOnly bool `json:"vote_only,omitzero"`
	// Checkpoint is a sequence. Answers up to it need no deferral, because the agent or its
	// session started again after they arrived.
	Checkpoint uint64 `json:"checkpoint,omitzero"`
	// Answers is the number of the agent's own answers. Checked is the first answer with an
	// accepted checklist, counted from 1; 0: no such answer.
	Answers int `json:"answers,omitzero"`
	Checked int `json:"checked,omitzero"`
}

// Clone returns a copy with a Seen map of its own.
func (p *Peers) Clone() Peers {
	c := *p
	c.Seen = maps.Clone(p.Seen)
	return c
}

// A Receiver is the agent that a delivery hook selects and renders items for.
type Receiver struct {
	Routing
	// Peers is the agent's cursor before the event.
	Peers Peers
	// Round is the agent's round; nil: the agent has no round.
	Round *Round
}

// Handout is what a delivery hook made of its items.
type Handout struct {
	Injections []Injection
	// Restart requests a new turn instead of a message in this one.
	Restart *Restart
	// Workspaces lists the snapshots that the texts name.
	Workspaces []Workspace
	// Retry makes the agent continue instead of ending its turn. It applies only at
	// BeforeFinalResponse.
	Retry bool
}

// A Workspace is a snapshot to unpack before the delivery of a text that names it. The agent's
// side replaces Path in the text by the folder where it unpacked the snapshot.
type Workspace struct {
	// Name is the folder's name: the author's anonymised name.
	Name string `json:"name"`
	// Path is the folder's placeholder in the texts of the verdict.
	Path string `json:"path"`
	// Snapshot is the content, a gzip-compressed tar.
	Snapshot Object `json:"snapshot"`
}

// A Round is an agent's current attempt, at the moment of reading. All of its times are
// durations, never clock times.
type Round struct {
	// Agent is the agent of the round.
	Agent string `json:"agent"`
	// Start is the revision of the round's start. It identifies the round permanently.
	Start uint64 `json:"start"`
	// Number is the number of the round, from 0.
	Number int `json:"number"`
	// Initial and Subsequent are the soft limits of round 0 and of later rounds; nil: no limit.
	Initial    *Duration `json:"initial,omitzero"`
	Subsequent *Duration `json:"subsequent,omitzero"`
	// Grace is the time between the delivery of the warning and the hard limit.
	Grace Duration `json:"grace"`
	// Elapsed is the age of the round.
	Elapsed Duration `json:"elapsed"`
	// WrapUp reports that an operator asked the agent to finish.
	WrapUp bool `json:"wrap_up,omitzero"`
	// Warned reports that the warning was delivered, Since ago.
	Warned bool     `json:"warned,omitzero"`
	Since  Duration `json:"since,omitzero"`
	// Denials is the number of consecutive refused calls.
	Denials int `json:"denials,omitzero"`
	// Terminate reports that there were so many denials that the run should end.
	Terminate bool `json:"terminate,omitzero"`
}

// Limit returns the soft limit of the round; nil: no limit.
func (r *Round) Limit() *Duration {
	if r.Number == 0 {
		return r.Initial
	}
	return r.Subsequent
}

// SoftDue reports whether the agent's warning is due.
func (r *Round) SoftDue() bool {
	limit := r.Limit()
	return !r.Warned && (r.WrapUp || limit != nil && r.Elapsed >= *limit)
}

// Blocked reports whether the agent may only use terminal tools: its grace is over, or the run
// should end.
func (r *Round) Blocked() bool { return r.Terminate || r.Warned && r.Since >= r.Grace }
