package schema

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A Record is what the feed tells about one verdict: who, what, which hooks
// and what they decided, and no content of tools, prompts or injections. The
// record that is kept says more of it, down to Content.
type Record struct {
	Time    time.Time `json:"time"`
	EventID string    `json:"event_id,omitzero"`
	// TraceID is the trace that the event is in; empty: nobody keeps one.
	TraceID string `json:"trace_id,omitzero"`
	// Attempt counts how often the event was asked; 0: once.
	Attempt int       `json:"attempt,omitzero"`
	Event   EventType `json:"event,omitzero"`
	Agent   string    `json:"agent,omitzero"`
	Session string    `json:"session,omitzero"`
	// Runtime is the agent's runtime, Host the name of its machine if it is known,
	// Broker who judged. Only what is kept says these.
	Runtime string `json:"runtime,omitzero"`
	Host    string `json:"host,omitzero"`
	Broker  string `json:"broker,omitzero"`
	Tool    string `json:"tool,omitzero"`
	// ToolKind is the tool's kind, alike in all runtimes. Only what is kept says it.
	ToolKind string `json:"tool_kind,omitzero"`
	// InputHash is the SHA-256 of the canonical form (RFC 8785) of what the hooks were
	// asked about, before any rewrite: the tool's input, or the prompt. Only what is
	// kept says it.
	InputHash     string            `json:"input_hash,omitzero"`
	Decision      Decision          `json:"decision,omitzero"`
	Reason        string            `json:"reason,omitzero"`
	Rewritten     bool              `json:"rewritten,omitzero"`
	Injections    []InjectionRecord `json:"injections,omitzero"`
	ExecutedHooks []ExecutedHook    `json:"executed_hooks,omitzero"`
	HookErrors    []string          `json:"hook_errors,omitzero"`
	ConfigVersion uint64            `json:"config_version,omitzero"`
	Took          Duration          `json:"took,omitzero"`
	// Failed: a hook did not answer as it should, and that refused the call ("closed")
	// or was taken as no opinion ("open").
	Failed Failure `json:"failed,omitzero"`
	// Shed: the event had waited too long to be judged; the hooks' failure policies
	// answered. Malformed: it could not be judged as it was.
	Shed      bool `json:"shed,omitzero"`
	Malformed bool `json:"malformed,omitzero"`
	// Limited is the limit that the agent was over, so that the event was not judged:
	// "rate" or "calls"; empty: none. Such an event is shed, too.
	Limited string `json:"limited,omitzero"`
	// More counts further events of the agent that were over that limit within about a
	// second, and of which nothing else is told; the record is about no event then. Without an
	// agent they are of several.
	More int `json:"more,omitzero"`
	// Aside: the record is about hooks whose answers are not in the verdict,
	// shadow hooks or such that ran beside the one that ended the chain.
	Aside bool `json:"aside,omitzero"`
	// Would is what the call would have come to if this shadow hook had counted.
	Would Decision `json:"would,omitzero"`
	// Unjudged: nobody of the fabric judged the call. The decision is its shim's, the
	// time when that was; it was handed in when somebody answered again.
	Unjudged bool `json:"unjudged,omitzero"`
	// Lost counts such calls of the agent that its machine forgot, because there
	// were too many; the record is about no event then.
	Lost int `json:"lost,omitzero"`
	// Frozen: no hook refused the call, but a freeze of its agent.
	Frozen bool `json:"frozen,omitzero"`
	// Freeze: the record is about no event, but that somebody froze or thawed agents.
	Freeze *FreezeChange `json:"freeze,omitzero"`
	// Expired: the record is about no event, but about an item that waited for too
	// long and is gone.
	Expired *PendingItem `json:"expired,omitzero"`
	// Content is what was asked about, and what the hooks made of it, without what
	// looks like a secret. It is there only where the record is to keep it.
	Content jsontext.Value `json:"content,omitzero"`
	// Cut names what was left out of a record because it was too large.
	Cut []string `json:"cut,omitzero"`
}

// Failure says what the failure of a hook meant for a call; empty: none failed.
type Failure string

// What a failure may mean.
const (
	FailedOpen   Failure = "open"
	FailedClosed Failure = "closed"
)

// Failed is what failures of hooks meant for the call at t. One that refused it is
// told before those that were taken as no opinion.
func (v *Verdict) Failed(t EventType) (f Failure) {
	for i := range v.ExecutedHooks {
		switch x := &v.ExecutedHooks[i]; {
		case x.Outcome == OK || x.Mode == Shadow:
		case t.Terminal(x.Decision):
			return FailedClosed
		default:
			f = FailedOpen
		}
	}
	return f
}

// An InjectionRecord is an injection without its content.
type InjectionRecord struct {
	Hook     string   `json:"hook,omitzero"`
	Source   string   `json:"source,omitzero"`
	Strategy Strategy `json:"strategy"`
	Length   int      `json:"length"`
	Sequence uint64   `json:"sequence,omitzero"`
}

// ExpiredRecord is the record of an item that waited for too long.
func ExpiredRecord(it *Item) *Record {
	now := time.Now().UTC()
	return &Record{Time: now, Agent: it.Scope.Agent, Session: it.Scope.Session, Expired: &PendingItem{
		Key: it.Key, Sequence: it.Sequence, Scope: it.Scope, Source: it.Source, Strategy: it.Strategy, State: Expired,
		Length: it.Length(), Age: Duration(max(0, now.Sub(it.Accepted))), Matcher: it.Matcher,
	}}
}

// UnjudgedRecord is the record of a call that nobody judged.
func UnjudgedRecord(u *Unjudged) *Record {
	return &Record{
		Time: u.Time, EventID: u.EventID, Event: u.Event, Agent: u.Agent, Session: u.Session, Tool: u.Tool,
		Decision: u.Decision, Reason: u.Why, ConfigVersion: u.ConfigVersion, Unjudged: true, Lost: u.Lost,
	}
}

// LimitedRecord is the record of so many events of an agent that were over a limit.
func LimitedRecord(agent, limit string, more int) *Record {
	return &Record{Time: time.Now().UTC(), Agent: agent, Limited: limit, More: more}
}

// RecordOf is the record of a verdict.
func RecordOf(r *Routing, v *Verdict, took time.Duration) *Record {
	rec := &Record{
		Time: time.Now().UTC(), EventID: r.ID, TraceID: r.Trace.ID(), Event: r.Event, Agent: r.Agent, Session: r.Session, Tool: r.Tool,
		Decision: v.Decision, Reason: v.Reason, Rewritten: v.Rewritten(r.Event) != nil,
		ExecutedHooks: v.ExecutedHooks, HookErrors: v.HookErrors, ConfigVersion: v.ConfigVersion,
		Frozen: v.Frozen, Took: Duration(took),
	}
	for _, in := range v.Injections {
		rec.Injections = append(rec.Injections, InjectionRecord{
			Hook: in.Hook, Source: in.Source, Strategy: in.Strategy, Length: in.Length(), Sequence: in.Sequence,
		})
	}
	return rec
}
