package aggregator_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
	"github.com/hookfabric/hookfabric/schema"
)

// of returns a question of another agent, with the time that its shim waits.
func of(agent string, left time.Duration) *nats.Msg {
	r := schema.Routing{Event: schema.PreToolUse, Agent: agent, Session: "s", ID: eventID, Tool: "Bash"}
	return bus.EventMsg("hook.v1.event."+agent+".PreToolUse", r, 1, left, nil, []byte(`{"hook_type":"PreToolUse","tool_name":"Bash","tool_input":{}}`))
}

// came counts the answers to some agents' questions: judged, or refused because of a limit.
type came struct{ judged, limited int }

// outcomes looks at the answers to all, which name the flag that raises the limit.
func outcomes(t *testing.T, all []*asking, flag string) (c came) {
	t.Helper()
	for _, a := range all {
		v, _ := a.verdict()
		switch x := v.ExecutedHooks; {
		case len(x) == 1 && x[0].Outcome == schema.OK && v.Decision == schema.Allow:
			c.judged++
		case len(x) == 1 && x[0].Outcome == schema.Busy && v.Decision == schema.Deny && strings.Contains(v.Reason, flag):
			c.limited++
		default:
			t.Fatalf("%+v", v)
		}
	}
	return c
}

// TestAnAgentThatRunsAwayLeavesTheOthersTheirs has one agent send fifty times its rate, and twenty
// quiet agents, in a fabric that can judge a third of that. The quiet agents notice no difference.
func TestAnAgentThatRunsAwayLeavesTheOthersTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, burst, long = 2, 4, 8
		f := narrowWith(t, aggregator.Options{PerAgent: ratelimit.Limits{Rate: rate, Burst: burst}}, failClosed)
		var wild, quiet []*asking
		for i := range long * 100 {
			wild = append(wild, f.send(of("wild", 20*time.Second)))
			if i%5 == 0 {
				quiet = append(quiet, f.send(of(fmt.Sprint("quiet", i/5%20), 20*time.Second)))
			}
			<-time.After(10 * time.Millisecond)
		}
		if c := outcomes(t, quiet, ""); c.judged != len(quiet) {
			t.Errorf("the quiet ones: %+v of %d", c, len(quiet))
		}
		c := outcomes(t, wild, `"wild" sends more than 2 events per second`)
		if most := burst + rate*long; c.judged > most || c.judged < most-2 || c.limited != len(wild)-c.judged {
			t.Errorf("the wild one: %+v of %d; %d may pass", c, len(wild), most)
		}
		if n := f.value("limited_total", "limit=rate"); n != float64(c.limited) {
			t.Errorf("%v counted, %d were over", n, c.limited)
		}
		if n := f.value("shed_total", "cause=busy") + f.value("shed_total", "cause=stale"); n != 0 {
			t.Errorf("%v were shed", n)
		}
		if l := f.agg.Status().Limited; len(l) != 1 || l[0].Name != "wild" || l[0].Limit != "rate" || l[0].Refused != c.limited || l[0].Last.Std() > time.Second {
			t.Errorf("status: %+v", l)
		}
		<-after1m()
		if l := f.agg.Status().Limited; l != nil {
			t.Errorf("a minute after that: %+v", l)
		}
	})
}

// TestAnAgentHasOnlySoManyCallsUnderWay checks an agent whose calls never end. Its further calls
// are refused until one ends, and the calls of other agents are judged.
func TestAnAgentHasOnlySoManyCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		defer close(hold)
		lib := library{"guard": func(_ context.Context, e *schema.Event) (schema.Result, error) {
			if e.AgentID == "wild" {
				<-hold
			}
			return schema.Allowed(), nil
		}}
		f := startWith(t, aggregator.Options{Calls: 8, PerAgent: ratelimit.Limits{Calls: 3}}, lib, hook("guard", failClosed))
		var wild, quiet []*asking
		for i := range 100 {
			if i == 3 {
				synctest.Wait() // those that came together are taken in any order
			}
			wild = append(wild, f.send(of("wild", 10*time.Second)))
			quiet = append(quiet, f.send(of(fmt.Sprint("quiet", i), 10*time.Second)))
		}
		if c := outcomes(t, quiet, ""); c.judged != len(quiet) {
			t.Errorf("the quiet ones: %+v", c)
		}
		if c := outcomes(t, wild[3:], "has 3 calls under way"); c.limited != 97 {
			t.Errorf("the wild one: %+v", c)
		}
		for range 3 {
			hold <- struct{}{}
		}
		if c := outcomes(t, wild[:3], ""); c.judged != 3 {
			t.Errorf("those under way: %+v", c)
		}
		again := f.send(of("wild", 10*time.Second))
		hold <- struct{}{}
		if c := outcomes(t, []*asking{again}, ""); c.judged != 1 {
			t.Errorf("after they ended: %+v", c)
		}
	})
}

// once returns options with a limit of one event.
func once() aggregator.Options {
	return aggregator.Options{PerAgent: ratelimit.Limits{Rate: 0.5, Burst: 1}}
}

func TestAnAnswerOverALimitSaysWhenToAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startWith(t, once(), library{"x": says(schema.Allowed())}, hook("x", failClosed))
		f.ask(event(schema.PreToolUse))
		m := <-f.send(event(schema.PreToolUse)).replies
		wait, err := time.ParseDuration(m.Header.Get(schema.HeaderRetryAfter))
		if err != nil || wait != 2*time.Second || !strings.Contains(string(m.Data), "try again in 2s") {
			t.Fatalf("%v %s (%v)", m.Header, m.Data, err)
		}
		<-time.After(wait)
		want(t, f.ask(event(schema.PreToolUse)), schema.Allow, "x:ok")
	})
}

// TestNothingIsLetThroughBecauseOfALimit checks that a limit refuses every call that would be
// refused without any worker. The broker does not judge a call over a limit.
func TestNothingIsLetThroughBecauseOfALimit(t *testing.T) {
	forged := event(schema.PreToolUse)
	forged.Data = []byte(`{"hook_type":"PreToolUse","tool_name":"Read","tool_input":{}}`)
	for name, c := range map[string]struct {
		hooks []schema.Hook
		ask   *nats.Msg
		want  schema.Decision
		trail string
	}{
		"a guarded call":              {[]schema.Hook{hook("x", failClosed)}, event(schema.PreToolUse), schema.Deny, "x:busy"},
		"one that fails open":         {[]schema.Hook{hook("x")}, event(schema.PreToolUse), schema.Deny, "x:busy"},
		"one guarded by the second":   {[]schema.Hook{hook("x"), hook("y", failClosed)}, event(schema.PreToolUse), schema.Deny, "x:busy y:busy"},
		"a guarded answer":            {[]schema.Hook{hook("x", failClosed, at(schema.BeforeFinalResponse))}, event(schema.BeforeFinalResponse), schema.Fail, "x:busy"},
		"one without a matching hook": {nil, event(schema.PreToolUse), schema.Continue, ""},
		"one with a forged tool":      {[]schema.Hook{hook("x")}, forged, schema.Deny, ""},
		"one after a tool":            {[]schema.Hook{hook("x", failClosed, at(schema.PostToolUse))}, event(schema.PostToolUse), schema.Continue, "x:busy"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := startWith(t, once(), library{"x": says(schema.Allowed()), "y": says(schema.Allowed())}, c.hooks...)
				f.ask(event(schema.SessionStart))
				want(t, f.ask(c.ask), c.want, c.trail)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := freezable(t, once(), library{"x": says(schema.Allowed())}, hook("x"))
		f.frozen("freeze._", `{"agents":"*"}`)
		for range 3 {
			if v := f.ask(event(schema.PreToolUse)); !v.Frozen || v.Decision != schema.Deny {
				t.Errorf("a frozen agent over its limit: %+v", v)
			}
		}
	})
}

// TestSecondQuestionsCount checks that repeated questions count too. Otherwise a client could mark
// every question as a repetition and have no limit.
func TestSecondQuestionsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startWith(t, once(), library{"x": says(schema.Allowed())}, hook("x", failClosed, idempotent))
		f.ask(event(schema.PreToolUse))
		again := event(schema.PreToolUse)
		again.Subject += bus.AgainSuffix
		again.Header.Set(schema.HeaderAttempt, "2")
		want(t, f.ask(again), schema.Deny, "x:busy")
	})
}

func TestTheFeedTellsWhoIsOverALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startWith(t, once(), library{"x": says(schema.Allowed())}, hook("x", failClosed))
		feed := make(chan *nats.Msg, 10)
		if _, err := f.shim.ChanSubscribe("hook.v1.feed.a", feed); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, want := range []string{"", "rate"} {
			f.ask(event(schema.PreToolUse))
			var rec schema.Record
			if err := schema.Unmarshal((<-feed).Data, &rec); err != nil || rec.Limited != want || rec.Shed != (want != "") {
				t.Errorf("%+v (%v); want %q", rec, err, want)
			}
		}
	})
}

// TestTheLogOfLimitsIsShort checks that the log has a few lines, however many agents are over a
// limit and however often.
func TestTheLogOfLimitsIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		opt := once()
		opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
		f := startWith(t, opt, library{"x": says(schema.Allowed())}, hook("x", failClosed))
		lines := func() int {
			synctest.Wait()
			return strings.Count(log.String(), "an agent exceeds a limit")
		}
		for range 50 {
			f.ask(event(schema.PreToolUse))
		}
		if n := lines(); n != 1 || !strings.Contains(log.String(), "agent=a limit=rate") {
			t.Errorf("%d lines of one agent:\n%s", n, &log)
		}
		for i := range 100 {
			for range 2 {
				f.ask(of(fmt.Sprint("made-up-", i), time.Minute))
			}
		}
		if n := lines(); n != 10 {
			t.Errorf("%d lines of many agents within 10 s", n)
		}
		if n := len(f.agg.Status().Limited); n != 64 {
			t.Errorf("the status lists %d", n)
		}
	})
}

// recorded returns the records on the feed so far.
func recorded(t *testing.T, feed <-chan *nats.Msg) (events []schema.Record, more map[string]int) {
	t.Helper()
	synctest.Wait()
	more = make(map[string]int)
	for {
		select {
		case m := <-feed:
			var rec schema.Record
			if err := schema.Unmarshal(m.Data, &rec); err != nil {
				t.Fatal(err)
			}
			if rec.More > 0 {
				more[rec.Agent] += rec.More
			} else {
				events = append(events, rec)
			}
		default:
			return events, more
		}
	}
}

// TestEventsOverALimitHaveFewRecords checks that an agent over a limit thousands of times has few
// records, and that all events are counted.
func TestEventsOverALimitHaveFewRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startWith(t, once(), library{"x": says(schema.Allowed())}, hook("x", failClosed))
		feed := make(chan *nats.Msg, 10_000)
		if _, err := f.shim.ChanSubscribe(bus.FeedsWildcard, feed); err != nil {
			t.Fatal(err)
		}
		const asked, long = 100, 5
		spoilt := event(schema.PreToolUse)
		spoilt.Header.Set(schema.HeaderAttempt, "twice")
		for range long {
			for i := range asked {
				if i%2 == 0 {
					f.ask(event(schema.PreToolUse))
				} else {
					f.ask(spoilt)
				}
			}
			<-time.After(time.Second)
		}
		<-time.After(2 * time.Second)
		events, more := recorded(t, feed)
		over := 0
		for _, rec := range events {
			if rec.Limited == "rate" {
				over++
			}
		}
		limited := int(f.value("limited_total", "limit=rate"))
		if over < long || over > long+1 || over+more["a"] != limited || len(events)-over+limited != asked*long || len(more) != 1 {
			t.Errorf("%d records of events over it and %v more; %d were over it", over, more, limited)
		}
		// The records of many agents at once are bounded, and all events are counted.
		for i := range 300 {
			for range 3 {
				f.ask(of(fmt.Sprint("made-up-", i), time.Minute))
			}
		}
		<-time.After(2 * time.Second)
		events, more = recorded(t, feed)
		over, sum := 0, 0
		for _, rec := range events {
			if rec.Limited != "" {
				over++
			}
		}
		for _, n := range more {
			sum += n
		}
		if over != 64 || over+sum != 600 || more[""] == 0 {
			t.Errorf("%d records, and %d more; 600 were over it: %v", over, sum, more)
		}
	})
}

// TestMalformedEventsCount checks that malformed events count, and are refused unread once the
// agent is over its limit.
func TestMalformedEventsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		opt := once()
		opt.Logger = slog.New(slog.NewTextHandler(&log, nil))
		f := startWith(t, opt, library{"x": says(schema.Allowed())}, hook("x"))
		unclear := event(schema.PreToolUse)
		unclear.Data = []byte(`{"hook_type":"PreToolUse","tool_name":"Bash","tool_input":{"command":"grep tool_name","tool_name":"x"}}`)
		want(t, f.ask(unclear), schema.Allow, "x:ok")
		for range 50 {
			v := f.ask(unclear)
			want(t, v, schema.Deny, "")
			if !strings.Contains(v.Reason, "--agent-rate") {
				t.Fatalf("%+v", v)
			}
		}
		none := event(schema.PreToolUse)
		none.Header.Del(schema.HeaderID)
		for range 50 {
			f.ask(none)
		}
		if n, m := f.value("limited_total", "limit=rate"), f.value("malformed_total"); n != 100 || m != 50 {
			t.Errorf("%v were over the limit, %v malformed", n, m)
		}
		if n := strings.Count(log.String(), "malformed event"); n != 0 {
			t.Errorf("%d lines of malformed events that are over a limit", n)
		}
		for i := range 50 {
			m := of(fmt.Sprint("agent", i), time.Minute)
			m.Header.Del(schema.HeaderID)
			f.ask(m)
		}
		if n := strings.Count(log.String(), "malformed event"); n != 10 {
			t.Errorf("%d lines of malformed events of many agents", n)
		}
		<-after1m()
		m := of("another", time.Minute)
		m.Header.Del(schema.HeaderID)
		f.ask(m)
		synctest.Wait()
		if !strings.Contains(log.String(), "more_before=40") {
			t.Errorf("it does not say how many more there were:\n%s", &log)
		}
	})
}

// TestNothingFailsOpenThatALimitRefuses checks that a call refused by a limit does not count as
// failed open, with any failure policy.
func TestNothingFailsOpenThatALimitRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startWith(t, once(), library{"x": says(schema.Allowed()), "y": says(schema.Result{})}, hook("x"), hook("y", at(schema.PostToolUse)))
		feed := make(chan *nats.Msg, 10)
		if _, err := f.shim.ChanSubscribe("hook.v1.feed.a", feed); err != nil {
			t.Fatal(err)
		}
		f.ask(event(schema.SessionStart))
		want(t, f.ask(event(schema.PreToolUse)), schema.Deny, "x:busy")
		if n := f.value("fail_open_total", "cause=busy", "hook=x"); n != 0 {
			t.Errorf("%v failed open", n)
		}
		want(t, f.ask(event(schema.PostToolUse)), schema.Continue, "y:busy")
		if n := f.value("fail_open_total", "cause=busy", "hook=y"); n != 1 {
			t.Errorf("%v passed unjudged", n)
		}
		events, _ := recorded(t, feed)
		limited := slices.IndexFunc(events, func(rec schema.Record) bool { return rec.Limited != "" })
		if len(events) != 2 || limited < 0 || events[limited].Event != schema.PreToolUse || events[limited].Failed != "" {
			t.Errorf("%+v", events)
		}
	})
}
