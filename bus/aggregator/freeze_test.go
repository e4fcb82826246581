package aggregator_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/schema"
)

// freezable starts a fabric whose agents can be frozen.
func freezable(t *testing.T, opt aggregator.Options, lib library, hooks ...schema.Hook) *fabric {
	t.Helper()
	f, err := freezes.Open(t.Context(), bustest.JetStream(t, bustest.Start(t)), freezes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	opt.Freezes, opt.Node = f, "b1"
	return startWith(t, opt, lib, hooks...)
}

// frozen returns the answer to a request that must succeed.
func (f *fabric) frozen(subject, body string) (a schema.FreezeAnswer) {
	f.t.Helper()
	answer, failed := f.request(subject, body)
	if failed != nil {
		f.t.Fatalf("%s %s: %v", subject, body, failed)
	}
	if err := schema.Unmarshal([]byte(answer), &a); err != nil {
		f.t.Fatal(err)
	}
	return a
}

// about is event for another tool.
func about(tool string) *nats.Msg {
	r := schema.Routing{Event: schema.PreToolUse, Agent: "a", Session: "s", ID: eventID, Tool: tool}
	m := event(schema.PreToolUse)
	return bus.EventMsg(m.Subject, r, 1, time.Minute, nil, []byte(`{"hook_type":"PreToolUse","agent_id":"a","tool_name":"`+tool+`","tool_input":{}}`))
}

func TestAFreezeComesBeforeAllHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		lib := library{"x": func(context.Context, *schema.Event) (schema.Result, error) {
			asked++
			return schema.Allowed(), nil
		}}
		f := freezable(t, aggregator.Options{}, lib, hook("x"), hook("x", at(schema.PostToolUse)), hook("x", at(schema.BeforeLLMCall)))
		want(t, f.ask(event(schema.PreToolUse)), schema.Allow, "x:ok")
		before := asked
		done := f.frozen("freeze._", `{"agents":"a|b","reason":"odd","by":"me"}`)
		if !done.Changed || done.Freeze.Agents != "a|b" || len(done.Frozen) != 1 || !slices.Equal(done.Confirmed, []string{"b1"}) || done.Missing != nil || done.Version == 0 {
			t.Errorf("%+v", done)
		}
		v := f.ask(event(schema.PreToolUse))
		want(t, v, schema.Deny, "")
		if !v.Frozen || v.FreezeVersion != done.Version || !strings.Contains(v.Reason, "by me") || !strings.Contains(v.Reason, "odd") || !strings.Contains(v.Reason, "thaw --agent 'a|b'") {
			t.Errorf("%+v", v)
		}
		if asked != before {
			t.Error("a hook was asked about a frozen call")
		}
		want(t, f.ask(about("mcp__workflow__vote")), schema.Allow, "x:ok")
		want(t, f.ask(event(schema.PostToolUse)), schema.Continue, "x:ok")
		want(t, f.ask(event(schema.BeforeLLMCall)), schema.Continue, "x:ok")
		if a, some, n := f.value("frozen", "scope=all"), f.value("frozen", "scope=agents"), f.value("freeze_refusals_total", "when=asked"); a != 0 || some != 1 || n != 1 {
			t.Errorf("%v, %v, %v", a, some, n)
		}
		f.frozen("freeze._", `{"agents":"*"}`)
		if a := f.value("frozen", "scope=all"); a != 1 {
			t.Errorf("all: %v", a)
		}
		if list := f.frozen("freeze._", `{}`); len(list.Frozen) != 2 || list.Changed || list.Freeze != nil {
			t.Errorf("%+v", list)
		}
		if st := f.agg.Status(); len(st.Frozen) != 2 {
			t.Errorf("%+v", st.Frozen)
		}
		f.frozen("thaw._", `{"agents":"*"}`)
		want(t, f.ask(event(schema.PreToolUse)), schema.Deny, "")
		f.frozen("thaw._", `{"agents":"a|b"}`)
		want(t, f.ask(event(schema.PreToolUse)), schema.Allow, "x:ok")
	})
}

// TestNothingPassesAFreeze checks that a frozen agent's call is denied also if no hook would refuse
// it: without hooks, or with hooks that are overridden, in shadow mode, or fail.
func TestNothingPassesAFreeze(t *testing.T) {
	shadow := func(h *schema.Hook) { h.Mode = schema.Shadow }
	for name, hooks := range map[string][]schema.Hook{
		"no hooks":             nil,
		"a shadow hook":        {hook("x", shadow)},
		"one that fails open":  {hook("missing", remote)},
		"one that is not ours": {hook("x", func(h *schema.Hook) { h.Agent = "other" })},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := freezable(t, aggregator.Options{}, library{"x": says(schema.Allowed())}, hooks...)
				f.frozen("freeze._", `{"agents":"*"}`)
				want(t, f.ask(event(schema.PreToolUse)), schema.Deny, "")
				f.activate(2, hooks...)
				want(t, f.ask(event(schema.PreToolUse)), schema.Deny, "")
			})
		})
	}
}

// TestNothingMalformedPassesAFreeze checks that a malformed event does not pass a freeze,
// regardless of the tool that it names.
func TestNothingMalformedPassesAFreeze(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, hooks := range map[string][]schema.Hook{"no hooks": nil, "an open hook": {hook("x")}, "a closed hook": {hook("x", failClosed)}} {
			f := freezable(t, aggregator.Options{}, library{"x": says(schema.Allowed())}, hooks...)
			done := f.frozen("freeze._", `{"agents":"*"}`)
			for how, c := range malformed {
				for tool, m := range map[string]*nats.Msg{"Bash": event(schema.PreToolUse), "vote": about("mcp__workflow__vote")} {
					c.spoil(m)
					if v := f.ask(m); v.Decision != schema.Deny || v.FreezeVersion != done.Version {
						t.Errorf("%s, %s, %s: %+v", name, how, tool, v)
					}
				}
				m := event(schema.PostToolUse)
				c.spoil(m)
				if v := f.ask(m); v.Decision != schema.Continue || v.Frozen {
					t.Errorf("%s, %s, after the tool: %+v", name, how, v)
				}
			}
		}
	})
}

// TestCallsUnderWayAreRefused checks that a call that waits for a hook's answer when a freeze comes
// is denied when the answer arrives.
func TestCallsUnderWayAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		says  schema.Result
		event schema.EventType
		want  schema.Decision
		froze bool
	}{
		"one that its hooks allow":  {schema.Allowed(), schema.PreToolUse, schema.Deny, true},
		"one that they refuse":      {schema.Denied("no"), schema.PreToolUse, schema.Deny, false},
		"one that is no tool call":  {schema.Result{}, schema.BeforeLLMCall, schema.Continue, false},
		"one that has no opinion":   {schema.Result{}, schema.PreToolUse, schema.Deny, true},
		"one that injects at ease":  {schema.Result{Injections: []schema.Injection{{Content: "x", Strategy: schema.ToolResult}}}, schema.PreToolUse, schema.Deny, true},
		"one that rewrites and all": {schema.Result{UpdatedInput: []byte(`{"command":"rm"}`)}, schema.PreToolUse, schema.Deny, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := freezable(t, aggregator.Options{}, library{}, hook("x", remote, at(c.event), writing))
				w := f.worker("w1")
				call := f.send(event(c.event))
				b, m := w.batch()
				f.frozen("freeze._", `{"agents":"*"}`)
				w.answer(b, m, c.says)
				v, _ := call.verdict()
				want(t, v, c.want, "x:ok")
				if v.Frozen != c.froze || v.Injections != nil || v.UpdatedInput != nil {
					t.Errorf("%+v", v)
				}
				if n := f.value("freeze_refusals_total", "when=under_way"); (n == 1) != c.froze {
					t.Errorf("counted %v", n)
				}
			})
		})
	}
}

func writing(h *schema.Hook) { h.Readonly = false }

// TestVerdictsNameWhatTheyWentBy checks that each verdict names the version of the freezes that it
// was decided with, also if no hook was asked.
func TestVerdictsNameWhatTheyWentBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := freezable(t, aggregator.Options{}, library{"x": says(schema.Allowed())}, hook("x", matching("Read")))
		if v := f.ask(event(schema.PreToolUse)); v.FreezeVersion != 0 || v.Decision != schema.Continue {
			t.Errorf("%+v", v)
		}
		first := f.frozen("freeze._", `{"agents":"other"}`)
		for _, m := range []*nats.Msg{event(schema.PreToolUse), about("Read"), event(schema.PostToolUse)} {
			if v := f.ask(m); v.FreezeVersion != first.Version || v.Frozen || v.ConfigVersion != 1 {
				t.Errorf("%+v", v)
			}
		}
		f.activate(2)
		if v := f.ask(event(schema.PreToolUse)); v.FreezeVersion != first.Version || v.ConfigVersion != 2 {
			t.Errorf("%+v", v)
		}
		second := f.frozen("thaw._", `{"agents":"other"}`)
		if v := f.ask(event(schema.PreToolUse)); v.FreezeVersion != second.Version || second.Version <= first.Version {
			t.Errorf("%+v", v)
		}
	})
}

func TestThePolicyHoldsWhatIsFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		configs, err := state.OpenConfigs(t.Context(), bustest.JetStream(t, bustest.Start(t)), state.ConfigOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f := freezable(t, aggregator.Options{Configs: configs}, library{"x": says(schema.Allowed())}, hook("x", failClosed))
		if _, p := f.policy("n"); p.FreezeVersion != 0 || p.Freezes != nil || p.Terminal != nil {
			t.Errorf("%+v", p)
		}
		done := f.frozen("freeze._", `{"agents":"a*","reason":"odd"}`)
		if _, p := f.policy("n"); p.FreezeVersion != done.Version || len(p.Freezes) != 1 || p.Freezes[0] != *done.Freeze || !slices.Equal(p.Terminal, []string{"vote", "new_answer"}) || len(p.Hooks) != 1 {
			t.Errorf("%+v", p)
		}
		done = f.frozen("thaw._", `{"agents":"a*"}`)
		if _, p := f.policy("n"); p.FreezeVersion != done.Version || p.Freezes != nil {
			t.Errorf("%+v", p)
		}
	})
}

func TestTheFeedTellsWhoFrozeWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := freezable(t, aggregator.Options{}, library{})
		feed := make(chan *nats.Msg, 10)
		if _, err := f.shim.ChanSubscribe(bus.FeedsWildcard, feed); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		record := func() (subject string, rec schema.Record) {
			m := <-feed
			if err := schema.Unmarshal(m.Data, &rec); err != nil {
				t.Error(err)
			}
			return m.Subject, rec
		}
		done := f.frozen("freeze._", `{"agents":"a","reason":"odd","by":"me"}`)
		f.frozen("freeze._", `{"agents":"a"}`) // changes nothing, and is no news
		if subject, rec := record(); subject != bus.FeedOfAll || *rec.Freeze != (schema.FreezeChange{Action: "freeze", Agents: "a", Reason: "odd", By: "me", Version: done.Version}) {
			t.Errorf("%s: %+v", subject, rec.Freeze)
		}
		f.ask(event(schema.PreToolUse))
		if subject, rec := record(); subject != "hook.v1.feed.a" || !rec.Frozen || rec.Decision != schema.Deny || rec.Tool != "Bash" {
			t.Errorf("%s: %+v", subject, rec)
		}
		ended := f.frozen("thaw._", `{"agents":"a","by":"you","reason":"fine"}`)
		if _, rec := record(); !rec.Freeze.Since.Equal(done.Freeze.Since) || rec.Freeze.Action != "thaw" || rec.Freeze.By != "you" || rec.Freeze.Version != ended.Version {
			t.Errorf("%+v", rec.Freeze)
		}
		synctest.Wait()
		if len(feed) > 0 {
			t.Errorf("%d more records", len(feed))
		}
	})
}

func TestFreezesThatMakeNoSenseAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := freezable(t, aggregator.Options{}, library{})
		for request, want := range map[string][2]string{
			`freeze.a {"agents":"a"}`:                {schema.CodeBadRequest, "hook.v1.ctl.freeze._"},
			`freeze._ []`:                            {schema.CodeBadRequest, "cannot read the request"},
			`freeze._ {"agents":"["}`:                {schema.CodeBadRequest, "agents"},
			`freeze._ {"agents":"a","within":"6m"}`:  {schema.CodeBadRequest, "within"},
			`freeze._ {"agents":"a","within":"-1s"}`: {schema.CodeBadRequest, "within"},
			`thaw._ {}`:                              {schema.CodeNotFound, "no freeze"},
			`thaw._ {"agents":"a"}`:                  {schema.CodeNotFound, "no freeze of \"a\""},
			`thaw.a {"agents":"a"}`:                  {schema.CodeBadRequest, "hook.v1.ctl.thaw._"},
			`freeze._ {"agents":"a","version":1}`:    {schema.CodeConflict, "the request is about version 1"},
			`freeze._ {"agents":"a","version":-1}`:   {schema.CodeBadRequest, "cannot read the request"},
		} {
			subject, body, _ := strings.Cut(request, " ")
			if _, failed := f.request(subject, body); failed == nil || failed.Code != want[0] || !strings.Contains(failed.Message, want[1]) {
				t.Errorf("%s: %v", request, failed)
			}
		}
		if len(f.agg.Status().Frozen) != 0 {
			t.Error("somebody is frozen")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{})
		if _, failed := f.request("freeze._", `{"agents":"a"}`); failed == nil || failed.Code != schema.CodeUnavailable {
			t.Errorf("%v", failed)
		}
	})
}

// TestWhoDoesNotGoByAFreezeIsNamed checks that the answer names a live broker whose lease does not
// confirm a freeze, and that the aggregator does not wait for a dead broker longer than its lease.
func TestWhoDoesNotGoByAFreezeIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		configs, err := state.OpenConfigs(t.Context(), js, state.ConfigOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f := freezable(t, aggregator.Options{Configs: configs}, library{})
		watching, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- configs.Watch(watching, func(state.Update) {}) }()
		defer func() { stop(); <-ended }()
		lease, err := configs.Lease(state.Node{ID: "b2"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		late := f.frozen("freeze._", `{"agents":"a","within":"2s"}`)
		if !slices.Equal(late.Missing, []string{"b2"}) || !slices.Equal(late.Confirmed, []string{"b1"}) || !late.Changed || late.Took.Std() < 2e9 {
			t.Errorf("%+v", late)
		}
		lease.Froze(late.Version)
		again := f.frozen("freeze._", `{"agents":"a","within":"2s"}`)
		if again.Missing != nil || !slices.Equal(again.Confirmed, []string{"b1", "b2"}) || again.Changed || again.Took.Std() > 1e9 {
			t.Errorf("%+v", again)
		}
		if err := lease.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if gone := f.frozen("thaw._", `{"agents":"a"}`); gone.Missing != nil || !slices.Equal(gone.Confirmed, []string{"b1"}) {
			t.Errorf("%+v", gone)
		}
	})
}

// TestAFreezeIsConfirmedOnlyByAListThatIsNewEnough checks that a list of leases without this
// broker's own confirms nothing: the list may be old, or the brokers may be unable to store their
// leases.
func TestAFreezeIsConfirmedOnlyByAListThatIsNewEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		configs, err := state.OpenConfigs(t.Context(), bustest.JetStream(t, bustest.Start(t)), state.ConfigOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f := freezable(t, aggregator.Options{Configs: configs, Lease: &lease{}}, library{})
		alone := f.frozen("freeze._", `{"agents":"a","within":"2s"}`)
		if !slices.Equal(alone.Missing, []string{"b1"}) || alone.Confirmed != nil || !alone.Changed || alone.Took.Std() < 2e9 {
			t.Errorf("%+v", alone)
		}
		watching, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- configs.Watch(watching, func(state.Update) {}) }()
		defer func() { stop(); <-ended }()
		leases := map[string]*state.Lease{}
		for _, id := range []string{"b1", "b2"} {
			if leases[id], err = configs.Lease(state.Node{ID: id}); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = leases[id].Close(t.Context()) }()
		}
		for _, c := range []struct {
			first, second uint64 // the versions in the brokers' leases
			missing       []string
		}{
			{0, alone.Version, []string{"b1"}},
			{alone.Version, alone.Version + 100, []string{"b2"}}, // it does not know yet that the state was restored to an earlier one
			{alone.Version, alone.Version, nil},
		} {
			leases["b1"].Froze(c.first)
			leases["b2"].Froze(c.second)
			synctest.Wait()
			again := f.frozen("freeze._", `{"agents":"a","within":"2s"}`)
			late := again.Took.Std() > 1e9
			if !slices.Equal(again.Missing, c.missing) || len(again.Confirmed) != 2-len(c.missing) || late != (c.missing != nil) {
				t.Errorf("%+v: %+v", c, again)
			}
		}
	})
}
