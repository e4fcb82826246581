package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

func TestFreezeAndThaw(t *testing.T) {
	s := newFakeControl(t)
	z := schema.Freeze{Agents: "scout-*", Reason: "odd", By: "ops", Since: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
	done := schema.FreezeAnswer{Changed: true, Freeze: &z, Frozen: []schema.Freeze{z}, Version: 3, Confirmed: []string{"b1", "b2"}, Took: schema.Duration(23400 * time.Microsecond)}
	late, lost := done, done
	late.Confirmed, late.Missing = []string{"b1"}, []string{"b2"}
	lost.Confirmed, lost.Trouble = []string{"b1"}, "reading the leases: timeout"
	thawed := done
	thawed.Frozen = []schema.Freeze{{Agents: schema.AllAgents, Since: z.Since}}
	const line = `agents "scout-*", since 2026-11-21T03:00:00Z, by ops (not verified): odd` + "\n"
	asked := []string{`freeze._ {}`, `freeze._ {"agents":"scout-*","reason":"odd","by":"ops","within":"20s","version":3}`}
	full := func(request string) any {
		if request == "{}" {
			return done
		}
		return &schema.ControlError{Code: schema.CodeUnavailable, Message: "nothing was stored"}
	}
	freeze := []string{"freeze", "--agent", "scout-*", "--reason", "odd", "--by", "ops"}
	s.check(t, []commandCase{
		{"a freeze prints how long it took", freeze, "", map[string]any{"freeze._": done}, commandRun{0, "frozen: " + line + "all 2 brokers apply it, after 23ms\n", "", asked}},
		{"a broker that does not apply it is named", freeze, "", map[string]any{"freeze._": late}, commandRun{1, "frozen: " + line,
			"broker: the change is stored, and 1 of 2 brokers apply it; after 20s these have not confirmed it: b2. Run the command again to wait for them, or stop them\n", asked}},
		{"brokers that cannot be listed are reported", freeze, "", map[string]any{"freeze._": lost}, commandRun{1, "frozen: " + line,
			"broker: the change is stored, but the brokers that must apply it cannot be listed (1 apply it): reading the leases: timeout\n", asked}},
		{"an error of the storage is printed", freeze, "", map[string]any{"freeze._": full},
			commandRun{1, "", "broker: nothing was stored\n", asked}},
		{"a thaw lists the other freezes", []string{"thaw", "--agent", "scout-*", "--by", "ops", "--timeout", "3s"}, "", map[string]any{"freeze._": done, "thaw._": thawed},
			commandRun{0, "thawed: " + line + "still frozen: all agents, since 2026-11-21T03:00:00Z\nall 2 brokers apply it, after 23ms\n", "", []string{`freeze._ {}`, `thaw._ {"agents":"scout-*","by":"ops","within":"3s","version":3}`}}},
		{"a list makes no other request", []string{"freeze", "--list"}, "", map[string]any{"freeze._": schema.FreezeAnswer{Frozen: []schema.Freeze{z}}}, commandRun{0, line, "", []string{`freeze._ {}`}}},
		{"no agents are frozen", []string{"freeze", "--list"}, "", map[string]any{"freeze._": schema.FreezeAnswer{Frozen: []schema.Freeze{}}}, commandRun{0, "no agents are frozen\n", "", []string{`freeze._ {}`}}},
		{"the agents must be named", []string{"thaw"}, "", nil, commandRun{2, "", "broker: no agents are named; add --agent GLOB or --all\n", nil}},
		{"the timeout must be above zero", []string{"freeze", "--all", "--timeout", "0s"}, "", nil, commandRun{2, "", "broker: --timeout is 0s; use a duration above zero\n", nil}},
	})
}

// The operator must learn whether an unconfirmed freeze may still take effect.
func TestAnUnansweredFreezeIsReported(t *testing.T) {
	s := newFakeControl(t)
	s.nc.Close()
	got := s.run(nil, "", "freeze", "--all")
	if got.Code != 1 || !strings.Contains(got.Stderr, "nothing was changed") {
		t.Errorf("%+v", got)
	}
}

// If another operator was faster, the command reads the freezes again. It thaws only the freeze that
// existed when it began, and no later one.
func TestAThawReadsTheFreezesAgainAfterAConflict(t *testing.T) {
	s := newFakeControl(t)
	z := schema.Freeze{Agents: "a", Since: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
	newer := z
	newer.Since = z.Since.Add(time.Second)
	// looks answers with one list after the other, and with the version of the last.
	version, last := uint64(0), uint64(0)
	looks := func(lists ...schema.Freeze) func(string) any {
		version, last = 0, uint64(len(lists))
		return func(string) any {
			version++
			return schema.FreezeAnswer{Frozen: lists[version-1 : version], Version: version}
		}
	}
	thaws := func(string) any {
		if version < last {
			return &schema.ControlError{Code: schema.CodeConflict, Message: "moved"}
		}
		return schema.FreezeAnswer{Changed: true, Freeze: &z, Version: version + 1, Confirmed: []string{"b1"}}
	}
	thaw := []string{"thaw", "--agent", "a", "--by", "ops", "--timeout", "3s"}
	s.check(t, []commandCase{{"other agents were thawed", thaw, "", map[string]any{"freeze._": looks(z, z), "thaw._": thaws}, commandRun{
		0, "thawed: agents \"a\", since 2026-11-21T03:00:00Z\n1 broker applies it, after 0s\n", "",
		[]string{`freeze._ {}`, `thaw._ {"agents":"a","by":"ops","within":"3s","version":1}`, `freeze._ {}`, `thaw._ {"agents":"a","by":"ops","within":"3s","version":2}`},
	}}})
	s.check(t, []commandCase{{"it was frozen again", thaw, "", map[string]any{"freeze._": looks(z, newer), "thaw._": thaws}, commandRun{
		1, "", "broker: another operator changed the freeze of \"a\" at the same time; look with 'broker freeze --list', and run the command again if it must be thawed\n",
		[]string{`freeze._ {}`, `thaw._ {"agents":"a","by":"ops","within":"3s","version":1}`, `freeze._ {}`},
	}}})
}
