package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// forged is a name that an agent, a hook or a worker could use to look like another line of an
// operator's terminal, or to hide.
const forged = "x\nFROZEN   no agent\r\x1b[2J\u009b31m\u202eevil\u2028end\ttab"

// answersOf returns answers of brokers in which every name is forged.
func answersOf() map[string]any {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	freeze := schema.Freeze{Agents: forged, Reason: forged, By: forged, Since: at}
	status := schema.FabricStatus{
		Fabric: forged, Version: forged, Ready: true, Trouble: forged, Pending: map[string]int{forged: 1},
		Pools:      []schema.PoolStatus{{Pool: forged, Workers: []schema.WorkerStatus{{Worker: forged, Capacity: 1}}}, {Pool: forged}},
		LoadErrors: map[string]string{forged: forged}, Frozen: []schema.Freeze{freeze},
		Limited:    []schema.LimitedStatus{{Name: forged, Limit: forged}},
		Agents:     []schema.AgentStatus{{Agent: forged, Session: forged, Runtime: forged, Version: forged, Host: forged}},
		AgentsSeen: 1,
		Brokers:    []schema.BrokerStatus{{Broker: forged, Candidate: &schema.Candidate{Error: forged}}},
		Shadow:     []schema.ShadowStatus{{Hook: forged, Counts: []schema.ShadowCount{{Decided: forged, Would: forged, Count: 1, Last: forged, Reason: forged}}}},
	}
	receipt := schema.Receipt{Key: forged, Sequence: 1, State: forged, Duplicate: true}
	return map[string]any{
		"status._":   status,
		"freeze._":   schema.FreezeAnswer{Freeze: &freeze, Frozen: []schema.Freeze{freeze}, Changed: true, Confirmed: []string{forged}},
		"pending._":  schema.PendingAnswer{Total: 1, Items: []schema.PendingItem{{Key: forged, Scope: schema.Scope{Session: forged}, Source: forged, State: forged}}},
		"withdraw._": schema.WithdrawAnswer{Key: forged, State: schema.Withdrawn}, "inject.a": receipt,
		"answer.a": schema.AnswerReceipt{Receipt: receipt, Name: forged, Label: forged},
		"config._": schema.ConfigAnswer{Version: 1, Text: "a: 1\n", History: []schema.VersionInfo{{Version: 1, By: forged, Note: forged}}, Warnings: []string{forged}},
		"hooks._": schema.HooksAnswer{
			Version: 1, Names: []string{forged}, Problems: []schema.Problem{{Node: forged, Hook: forged, Error: forged}},
			Hooks: []schema.Hook{{Name: forged, Event: forged, Matcher: forged, Type: forged, Handler: forged}},
		},
		"round.a": &schema.ControlError{Code: schema.CodeInternal, Message: forged},
	}
}

func TestNamesCannotForgeALineOfTheTerminal(t *testing.T) {
	s := newFakeControl(t)
	for _, args := range [][]string{
		{"status"}, {"status", "--agents"}, {"status", "--shadow"}, {"status", "--json"}, {"freeze", "--list"}, {"freeze", "--all"}, {"thaw", "--all"},
		{"pending"}, {"pending", "--json"}, {"withdraw", "k"}, {"inject", "--agent", "a", "hi"}, {"answer", "--agent", "a", "--session", "s", "hi"},
		{"config", "history"}, {"config", "history", "--json"}, {"round", "show", "--agent", "a"},
		{"hooks", "list"}, {"hooks", "list", "--json"}, {"hooks", "unregister", "h"},
	} {
		answers := answersOf()
		answers["thaw._"] = answers["freeze._"]
		got := s.run(answers, "", args...)
		out := got.Stdout + got.Stderr
		if out == "" {
			t.Errorf("%v prints nothing", args)
		}
		if strings.ContainsAny(out, "\r\x1b\u009b\u202e\u2028") {
			t.Errorf("%v writes control characters:\n%q", args, out)
		}
		for text := range strings.Lines(out) {
			if strings.HasPrefix(text, "FROZEN   no agent") {
				t.Errorf("%v writes a forged line:\n%s", args, out)
			}
		}
	}
}
