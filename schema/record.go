package schema

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A Record is the feed's entry for one verdict: the agent, the tool, the hooks and their
// decisions. The feed omits the content of tools, prompts and injections. The stored record has
// more members, up to Content.
type Record struct {
	Time    time.Time `json:"time"`
	EventID string    `json:"event_id,omitzero"`
	// TraceID is the id of the event's trace; empty: not traced.
	TraceID string `json:"trace_id,omitzero"`
	// Attempt counts the attempts to ask about the event; 0: one.
	Attempt int       `json:"attempt,omitzero"`
	Event   EventType `json:"event,omitzero"`
	Agent   string    `json:"agent,omitzero"`
	Session string    `json:"session,omitzero"`
	// Runtime is the agent's runtime, Host its machine's name if known, Broker the judging
	// broker. Only stored records have these.
	Runtime string `json:"runtime,omitzero"`
	Host    string `json:"host,omitzero"`
	Broker  string `json:"broker,omitzero"`
	Tool    string `json:"tool,omitzero"`
	// ToolKind is the kind of the tool, the same in all runtimes. Only stored records have it.
	ToolKind string `json:"tool_kind,omitzero"`
	// InputHash is the SHA-256 of the canonical form (RFC 8785) of the tool's input or the
	// prompt, before any rewrite. Only stored records have it.
	InputHash     string            `json:"input_hash,omitzero"`
	Decision      Decision          `json:"decision,omitzero"`
	Reason        string            `json:"reason,omitzero"`
	Rewritten     bool              `json:"rewritten,omitzero"`
	Injections    []InjectionRecord `json:"injections,omitzero"`
	ExecutedHooks []ExecutedHook    `json:"executed_hooks,omitzero"`
	HookErrors    []string          `json:"hook_errors,omitzero"`
	ConfigVersion uint64            `json:"config_version,omitzero"`
	Took          Duration          `json:"took,omitzero"`
	// Failed reports that a hook failed, and what that led to: the call was refused ("closed"),
	// or the hook counted as having no opinion ("open").
	Failed Failure `json:"failed,omitzero"`
	// Shed reports that the event waited too long, so the hooks' failure policies answered.
	// Malformed reports that the event could not be read or trusted.
	Shed      bool `json:"shed,omitzero"`
	Malformed bool `json:"malformed,omitzero"`
	// Limited is the limit that the agent exceeded, so that no hook judged the event: "rate" or
	// "calls"; empty: within the limits. Such an event is also Shed.
	Limited string `json:"limited,omitzero"`
	// More is the number of further events of the agent over that limit within about a second.
	// The record then is not about one event. Without an agent, the events are those of several
	// agents.
	More int `json:"more,omitzero"`
	// Aside reports that the record is about hooks that do not count in the verdict: shadow
	// hooks, or hooks that ran beside the one that ended the chain.
	Aside bool `json:"aside,omitzero"`
	// Would is the decision if this shadow hook had counted.
	Would Decision `json:"would,omitzero"`
	// Unjudged reports that no broker judged the call. Decision and Time are the shim's. The
	// shim reported the call when a broker answered again.
	Unjudged bool `json:"unjudged,omitzero"`
	// Lost is the number of unjudged calls that the agent's machine dropped, because there were
	// too many. The record then is not about one event.
	Lost int `json:"lost,omitzero"`
	// Frozen reports that a freeze refused the call, not a hook.
	Frozen bool `json:"frozen,omitzero"`
	// Freeze is the freeze or thaw that the record is about, instead of an event.
	Freeze *FreezeChange `json:"freeze,omitzero"`
	// Expired is the expired item that the record is about, instead of an event.
	Expired *PendingItem `json:"expired,omitzero"`
	// Content is the event's content and the hooks' changes to it, without likely secrets. It
	// is present only if the record is configured to store it.
	Content jsontext.Value `json:"content,omitzero"`
	// Cut names the members that were left out because the record was too large.
	Cut []string `json:"cut,omitzero"`
}

// Failure says what a hook's failure led to; empty: no hook failed.
type Failure string

// The consequences of a failure.
const (
	FailedOpen   Failure = "open"
	FailedClosed Failure = "closed"
)

// Failed returns what hooks' failures led to at t. A failure that refused the call takes
// precedence over one that did not.
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

// ExpiredRecord returns the record of an expired item.
func ExpiredRecord(it *Item) *Record {
	now := time.Now().UTC()
	return &Record{Time: now, Agent: it.Scope.Agent, Session: it.Scope.Session, Expired: &PendingItem{
		Key: it.Key, Sequence: it.Sequence, Scope: it.Scope, Source: it.Source, Strategy: it.Strategy, State: Expired,
		Length: it.Length(), Age: Duration(max(0, now.Sub(it.Accepted))), Matcher: it.Matcher,
	}}
}

// UnjudgedRecord returns the record of a call that no broker judged.
func UnjudgedRecord(u *Unjudged) *Record {
	return &Record{
		Time: u.Time, EventID: u.EventID, Event: u.Event, Agent: u.Agent, Session: u.Session, Tool: u.Tool,
		Decision: u.Decision, Reason: u.Why, ConfigVersion: u.ConfigVersion, Unjudged: true, Lost: u.Lost,
	}
}

// LimitedRecord returns the record of that many events of an agent over a limit.
func LimitedRecord(agent, limit string, more int) *Record {
	return &Record{Time: time.Now().UTC(), Agent: agent, Limited: limit, More: more}
}

// RecordOf returns the record of a verdict.
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
