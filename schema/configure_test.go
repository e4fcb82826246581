package schema_test

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// configuring returns the messages about the configuration and its versions.
func configuring() map[string]any {
	problems := []schema.Problem{
		{Node: "w1", Hook: "lint", Error: "no module named policies.lint"},
		{Node: "w2", Error: "it did not say in time whether it can use the version"},
	}
	review := schema.Hook{
		Name: "review", Event: schema.PreToolUse, Agent: "agent1", Type: schema.HTTP, Handler: "https://policy.example/hooks",
		Timeout: took(2e6), Pool: schema.DefaultPool, Headers: map[string]string{"Authorization": "Bearer ${POLICY_TOKEN}"}, Sign: "POLICY_KEY",
		TLS:        schema.TLS{CA: "./ca.pem", Cert: "./client.pem", Key: "./client.key", ServerName: "policy.internal"},
		Registered: true,
	}
	overrides := []schema.Override{{Agent: "agent1", Event: schema.PreToolUse, Registered: true}}
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	return map[string]any{
		"follow":         &schema.FollowRequest{},
		"follow.version": &schema.FollowRequest{Version: 8, Fabric: fabric, Offset: 262144},
		"follow.answer":  &schema.Standing{Fabric: fabric, Revision: 31, Active: 7, Proposed: 8, Keep: []uint64{8, 7, 5}},
		"beat.candidate": &schema.Beat{
			Pool: "default", Worker: "w1", Capacity: 64, Versions: []uint64{6, 7, 8},
			Candidate: &schema.Candidate{Version: 8, Error: "the version cannot be read", LoadErrors: map[string]string{"lint": problems[0].Error}},
		},
		"beat.moving": &schema.Beat{Pool: "default", Worker: "w1", Capacity: 64, Moving: true, Versions: []uint64{8}},
		"config.registered": &schema.Config{
			Version: 8, Presets: []string{}, Hooks: []schema.Hook{review}, Overrides: overrides,
			Python: schema.PythonHosts{Interpreter: "./venv/bin/python", Hosts: 4, Memory: 512 << 20, Recycle: 10000},
		},
		"config.apply": &schema.ConfigRequest{
			Action: schema.ActionApply, Source: "hooks:\n  PostToolUse:\n    - {type: builtin, handler: log}\n",
			File: "hooks.yaml", Dir: "/etc/hookfabric", Force: true, Files: map[string]string{"./rules/ours.yaml": "rules: []\n"},
		},
		"config.rollback": &schema.ConfigRequest{Action: schema.ActionRollback, Version: 6},
		"config.refused":  &schema.ConfigAnswer{Version: 7, Refused: true, Problems: problems, Warnings: []string{"hooks.yaml:3:1: keys of MassGen are skipped here: ui"}},
		"config.show":     &schema.ConfigAnswer{Version: 7, Config: &schema.Config{Version: 7, Hooks: []schema.Hook{}}, Text: "hooks: {}\n"},
		"config.history": &schema.ConfigAnswer{Version: 7, Changed: true, History: []schema.VersionInfo{
			{Version: 7, At: at, By: "b1", Note: "applied hooks.yaml", Hooks: 2, Digest: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
			{Version: 6, At: at.Add(-time.Hour), Hooks: 1, Minor: true},
		}},
		"hooks.register": &schema.HooksRequest{
			Action: schema.ActionRegister, Hooks: jsontext.Value(`{"PreToolUse":{"override":true,"hooks":[{"handler":"./check.sh"}]}}`),
			Dir: "/etc/hookfabric", Force: true,
		},
		"hooks.unregister": &schema.HooksRequest{Action: schema.ActionUnregister, Names: []string{"check"}, Overrides: []schema.EventType{schema.PreToolUse}},
		"hooks.registered": &schema.HooksAnswer{Version: 8, Changed: true, Names: []string{"check"}},
		"hooks.refused":    &schema.HooksAnswer{Version: 7, Refused: true, Problems: problems},
		"hooks.list":       &schema.HooksAnswer{Version: 8, Hooks: []schema.Hook{review}, Overrides: overrides},
		"status.shadow":    &schema.StatusRequest{Shadow: true},
		"status.agents":    &schema.StatusRequest{Agents: true, Host: "dev-7"},
		"status.brokers": &schema.FabricStatus{
			Fabric: fabric, Version: "0.1.0", ConfigVersion: 7, Ready: true, Trouble: "nothing can be stored", Pools: []schema.PoolStatus{{Pool: "gpu", Workers: []schema.WorkerStatus{
				{Worker: "w1", Capacity: 64, Versions: []uint64{7, 8}, Candidate: &schema.Candidate{Version: 8}},
			}}},
			Pending: map[string]int{schema.SourceHuman: 3}, OldestPending: took(4.5e6), BlockedRounds: 1,
			Agents:     []schema.AgentStatus{{Agent: "claude-1", Session: "1", Runtime: "claude", Version: "2.1.329", Host: "dev-7", Silent: took(9e6), Ended: true}},
			AgentsSeen: 1, AgentsCrowded: true,
			Frozen:  frozen(),
			Limited: []schema.LimitedStatus{{Name: "claude-1", Limit: "rate", Refused: 4711, Since: took(48e6), Last: took(2e6)}},
			Brokers: []schema.BrokerStatus{{Broker: "b1", ConfigVersion: 7, Candidate: &schema.Candidate{Version: 8}, FreezeVersion: 3}, {Broker: "b2", ConfigVersion: 7, RealmUnreadable: true}},
			Shadow: []schema.ShadowStatus{{Hook: "new-policy", Counts: []schema.ShadowCount{
				{Decided: schema.Continue, Would: schema.Deny, Count: 12, Last: eventID, Reason: "writes outside the workspace"},
			}}},
		},
	}
}
