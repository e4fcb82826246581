package schema_test

import (
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// freezing returns the messages about frozen agents.
func freezing() map[string]any {
	z := frozen()[0]
	done := func(c schema.FreezeChange) *schema.Record {
		rec := schema.FreezeRecord(&c)
		rec.Time = z.Since
		return rec
	}
	terminal := schema.TerminalTools()
	known, after := uint64(2), uint64(3)
	return map[string]any{
		"freeze":      &schema.FreezeRequest{Agents: z.Agents, Reason: z.Reason, By: z.By, Within: schema.Duration(20 * time.Second), Version: &known},
		"freeze.list": &schema.FreezeRequest{},
		"freeze.answer": &schema.FreezeAnswer{
			Changed: true, Freeze: &z, Frozen: frozen(), Version: 3, Confirmed: []string{"b1", "b2"}, Missing: []string{"b3"}, Took: took(20e6),
			Trouble: "reading the leases of the brokers: no responders",
		},
		"thaw":        &schema.FreezeRequest{Agents: z.Agents, By: z.By, Version: &after},
		"feed.freeze": done(schema.FreezeChange{Action: schema.VerbFreeze, Agents: z.Agents, Reason: z.Reason, By: z.By, Version: 3}),
		"feed.thaw":   done(schema.FreezeChange{Action: schema.VerbThaw, Agents: z.Agents, By: z.By, Since: z.Since, Version: 4}),
		"verdict.frozen": &schema.Verdict{
			Decision: schema.Deny, Reason: z.Refusal("Bash", terminal), ConfigVersion: 7, Frozen: true, FreezeVersion: 3, Fabric: fabric,
		},
	}
}

func frozen() []schema.Freeze {
	return []schema.Freeze{{Agents: "scout-*", Reason: "wrong deployment", By: "ops@console", Since: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}}
}
