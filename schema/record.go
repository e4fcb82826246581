package schema

import "time"

// A Record is what the feed tells about one verdict: who, what, which hooks
// and what they decided, and no content of tools, prompts or injections.
type Record struct {
	Time          time.Time         `json:"time"`
	EventID       string            `json:"event_id"`
	Event         EventType         `json:"event"`
	Agent         string            `json:"agent"`
	Session       string            `json:"session,omitzero"`
	Tool          string            `json:"tool,omitzero"`
	Decision      Decision          `json:"decision"`
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
}

// An InjectionRecord is an injection without its content.
type InjectionRecord struct {
	Hook     string   `json:"hook,omitzero"`
	Source   string   `json:"source,omitzero"`
	Strategy Strategy `json:"strategy"`
	Length   int      `json:"length"`
	Sequence uint64   `json:"sequence,omitzero"`
}

// RecordOf is the record of a verdict.
func RecordOf(r *Routing, v *Verdict, took time.Duration) *Record {
	rec := &Record{
		Time: time.Now().UTC(), EventID: r.ID, Event: r.Event, Agent: r.Agent, Session: r.Session, Tool: r.Tool,
		Decision: v.Decision, Reason: v.Reason, Rewritten: v.Rewritten(r.Event) != nil,
		ExecutedHooks: v.ExecutedHooks, HookErrors: v.HookErrors, ConfigVersion: v.ConfigVersion,
		Took: Duration(took),
	}
	for _, in := range v.Injections {
		rec.Injections = append(rec.Injections, InjectionRecord{
			Hook: in.Hook, Source: in.Source, Strategy: in.Strategy, Length: len(in.Content), Sequence: in.Sequence,
		})
	}
	return rec
}
