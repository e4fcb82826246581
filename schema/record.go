package schema

import "time"

// A Record is what the feed tells about one verdict: who, what, which hooks
// and what they decided, and no content of tools, prompts or injections.
type Record struct {
	Time          time.Time         `json:"time"`
	EventID       string            `json:"event_id,omitzero"`
	Event         EventType         `json:"event,omitzero"`
	Agent         string            `json:"agent,omitzero"`
	Session       string            `json:"session,omitzero"`
	Tool          string            `json:"tool,omitzero"`
	Decision      Decision          `json:"decision,omitzero"`
	Reason        string            `json:"reason,omitzero"`
	Rewritten     bool              `json:"rewritten,omitzero"`
	Injections    []InjectionRecord `json:"injections,omitzero"`
	ExecutedHooks []ExecutedHook    `json:"executed_hooks,omitzero"`
	HookErrors    []string          `json:"hook_errors,omitzero"`
	ConfigVersion uint64            `json:"config_version,omitzero"`
	Took          Duration          `json:"took,omitzero"`
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

// RecordOf is the record of a verdict.
func RecordOf(r *Routing, v *Verdict, took time.Duration) *Record {
	rec := &Record{
		Time: time.Now().UTC(), EventID: r.ID, Event: r.Event, Agent: r.Agent, Session: r.Session, Tool: r.Tool,
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
