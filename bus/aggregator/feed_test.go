package aggregator_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
)

// records subscribes to the feed. The function that it returns lists the records since then.
func (f *fabric) records() func() []schema.Record {
	f.t.Helper()
	all := make(chan *nats.Msg, 1000)
	if _, err := f.shim.ChanSubscribe(bus.FeedsWildcard, all); err != nil {
		f.t.Fatal(err)
	}
	synctest.Wait()
	return func() (records []schema.Record) {
		synctest.Wait()
		for len(all) > 0 {
			m := <-all
			var r schema.Record
			if err := schema.Unmarshal(m.Data, &r); err != nil {
				f.t.Error(err)
			}
			if strings.Contains(string(m.Data), "secret") {
				f.t.Errorf("the feed holds content: %s", m.Data)
			}
			records = append(records, r)
		}
		return records
	}
}

func TestEveryVerdictIsOnTheFeedWithoutContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lib := library{
			"tells":  says(schema.Injected("a secret", schema.UserMessage)),
			"shadow": says(schema.Denied("would have")),
		}
		f := start(t, lib, hook("tells", matching("Bash")), hook("shadow", func(h *schema.Hook) { h.Mode, h.Matcher = schema.Shadow, "Bash" }))
		records := f.records()
		m := event(schema.PreToolUse)
		m.Data = []byte(`{"tool_name":"Bash","tool_input":{"command":"a secret"}}`)
		v := f.ask(m)
		want(t, v, schema.Continue, "tells:ok")
		f.ask(event(schema.QueryEnd))
		got := records()
		ignore := cmpopts.IgnoreFields(schema.Record{}, "Time", "Took")
		anyOrder := cmpopts.SortSlices(func(a, b schema.Record) bool {
			return a.Event < b.Event || a.Event == b.Event && !a.Aside && b.Aside
		})
		common := schema.Record{EventID: eventID, Event: schema.PreToolUse, Agent: "a", Session: "s", Tool: "Bash"}
		first, aside := common, common
		first.Decision, first.ConfigVersion = schema.Continue, 1
		first.Injections = []schema.InjectionRecord{{Hook: "tells", Strategy: schema.UserMessage, Length: 8}}
		first.ExecutedHooks = []schema.ExecutedHook{{Hook: "tells", Outcome: schema.OK, Worker: "local"}}
		aside.Decision, aside.Reason, aside.Aside, aside.Would = schema.Deny, "would have", true, schema.Deny
		aside.ExecutedHooks = []schema.ExecutedHook{{Hook: "shadow", Decision: schema.Deny, Reason: "would have", Outcome: schema.OK, Worker: "local", Mode: schema.Shadow}}
		wantAll := []schema.Record{first, {EventID: eventID, Event: schema.QueryEnd, Agent: "a", Session: "s", Decision: schema.Continue, ConfigVersion: 1}, aside}
		if diff := cmp.Diff(wantAll, got, ignore, anyOrder); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOutcomesBehindTheEndOfTheChainStandAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beside := func(h *schema.Hook) { h.Readonly = true }
		f := start(t, library{"no": says(schema.Denied("no")), "yes": says(schema.Allowed())}, hook("no", beside), hook("yes", beside))
		records := f.records()
		want(t, f.ask(event(schema.PreToolUse)), schema.Deny, "no:ok")
		asides := 0
		for _, r := range records() {
			if r.Aside && r.ExecutedHooks[0].Hook == "yes" {
				asides++
			}
		}
		if asides != 1 {
			t.Errorf("%d records about the hook that ran beside", asides)
		}
	})
}

func TestWhereNobodyListensNothingIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		interest := func(subject string) bool { asked = append(asked, subject); return false }
		f := startWith(t, aggregator.Options{Interest: interest}, library{}, hook("x", matching("Edit")))
		records := f.records()
		f.ask(event(schema.PreToolUse))
		if got := records(); len(got) != 0 || len(asked) != 1 || asked[0] != "hook.v1.feed.a" {
			t.Errorf("%+v, asked about %q", got, asked)
		}
	})
}

func TestDrainPublishesWhatTheFeedStillHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{})
		records := f.records()
		var all []*asking
		for range 100 {
			all = append(all, f.send(event(schema.PreToolUse)))
		}
		for _, a := range all {
			a.verdict()
		}
		if err := f.agg.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		<-time.After(time.Second)
		if n := len(records()); n != 100 {
			t.Errorf("%d records", n)
		}
	})
}
