package schema_test

import (
	"bytes"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// policing returns the messages about decisions without a broker.
func policing() map[string]any {
	refused := schema.Unjudged{
		EventID: eventID, Time: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), Agent: "agent1", Session: "7be05901-cf1a-4925",
		Event: schema.PreToolUse, Tool: "Bash", Decision: schema.Deny, ConfigVersion: 7,
		Why: "the fabric is unreachable; no-destructive-shell guards this call",
	}
	lost := schema.Unjudged{EventID: earlierID, Time: refused.Time, Agent: "agent1", Lost: 812}
	return map[string]any{
		"policy":        &schema.PolicyRequest{Nonce: "0199f3c1-6d1f"},
		"policy.answer": signed("0199f3c1-6d1f"),
		"policy.document": &schema.Policy{
			Fabric: fabric, ConfigVersion: 7, Coarse: true, Hooks: document().Hooks, Overrides: []schema.Override{{Agent: "agent1", Event: schema.PreToolUse}},
			FreezeVersion: 3, Freezes: frozen(), Terminal: schema.TerminalTools(),
		},
		"keep":          &schema.KeepRequest{Data: []byte(`{"role":"user","content":"Fix the parser."}` + "\n")},
		"keep.ask":      &schema.KeepRequest{Digest: object("c4").Digest, Size: 65611},
		"keep.answer":   &schema.KeepAnswer{Digest: object("c4").Digest, Size: 65611, Known: true},
		"part":          &schema.PartRequest{Digest: object("c4").Digest, Offset: 524288},
		"record":        &schema.RecordRequest{Calls: []schema.Unjudged{refused, lost}},
		"record.answer": &schema.RecordAnswer{Fabric: fabric, Known: 1},
		"feed.unjudged": schema.UnjudgedRecord(&refused),
		"feed.lost":     schema.UnjudgedRecord(&lost),
		"feed.limited":  limited(),
	}
}

// document returns a policy with every member.
func document() *schema.Policy {
	return &schema.Policy{Fabric: fabric, ConfigVersion: 7, Hooks: []schema.PolicyHook{
		{Hook: "round_timeout_pre", Event: schema.PreToolUse, System: true, Like: "1", Preset: true, Guards: true},
		{Hook: "no-destructive-shell", Event: schema.PreToolUse, Agent: "agent*", Matcher: "Bash|run_shell_command", Guards: true, Native: true},
		{Hook: "summary", Event: schema.BeforeFinalResponse, History: true},
	}}
}

// signed returns that policy, signed with a public test key.
func signed(nonce string) *schema.PolicyAnswer {
	s, err := guard.NewSigner(bytes.Repeat([]byte{7}, guard.SeedSize))
	if err != nil {
		panic(err)
	}
	data, err := schema.Marshal(document())
	if err != nil {
		panic(err)
	}
	a := s.Sign(data)
	s.Freshen(&a, nonce)
	return &a
}

// limited returns the record of events over a limit without records of their own.
func limited() *schema.Record {
	rec := schema.LimitedRecord("agent1", "rate", 4711)
	rec.Time = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	return rec
}
