package schema

import "time"

// A Record is what the feed tells about one event: its verdict, or, in a
// record of its own, what came of a hook that has no part in a verdict.
type Record struct {
	// Time is when the verdict, or the outcome aside, was there.
	Time time.Time `json:"time"`
	// Fabric is the fabric's id.
	Fabric string `json:"fabric,omitzero"`
	// EventID is the event's, also under a second attempt.
	EventID string `json:"event_id"`
	// Attempt counts how often the event was asked, from 1.
	Attempt   int       `json:"attempt"`
	HookType  EventType `json:"hook_type"`
	AgentID   string    `json:"agent_id"`
	SessionID string    `json:"session_id,omitzero"`
	ToolName  string    `json:"tool_name,omitzero"`
	// Took is the time from question to verdict.
	Took Duration `json:"took,omitzero"`
	// Verdict is what the shim was answered. Nil: this record is about Aside.
	Verdict *Verdict `json:"verdict,omitzero"`
	// Aside is the part of one hook that is in no verdict: a shadow hook's, or
	// that of a hook that ran beside one that ended the chain.
	Aside *Verdict `json:"aside,omitzero"`
}
