package aggregator_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// hangs returns a handler that ignores its context until the channel is closed.
func hangs(until chan struct{}) workers.HandlerFunc {
	return func(context.Context, *schema.Event) (schema.Result, error) {
		<-until
		return schema.Denied("at last"), nil
	}
}

func TestWhatNoHookMatchesIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{"no": says(schema.Denied("no"))}, hook("no", matching("Edit")))
		for _, e := range schema.EventTypes() {
			v := f.ask(event(e))
			if diff := cmp.Diff(schema.Verdict{Decision: schema.Continue, ConfigVersion: 1, Fabric: "fabric-1"}, v); diff != "" {
				t.Errorf("%s: %s", e, diff)
			}
		}
	})
}

func TestHooksAreAskedAndTheirVerdictIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{"yes": says(schema.Allowed()), "no": says(schema.Denied("not this"))}, hook("yes"), hook("no"), hook("yes"))
		v := f.ask(event(schema.PreToolUse))
		want(t, v, schema.Deny, "yes:ok no:ok")
		if v.Reason != "not this" || v.ConfigVersion != 1 || v.Fabric != "fabric-1" || v.ExecutedHooks[0].Worker != "local" {
			t.Errorf("%+v", v)
		}
	})
}

func TestAMessageThatNobodyWaitsForIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := false
		f := start(t, library{"sees": func(context.Context, *schema.Event) (schema.Result, error) { ran = true; return schema.Result{}, nil }}, hook("sees"))
		if err := f.shim.PublishMsg(event(schema.PreToolUse)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if ran {
			t.Error("its hooks ran")
		}
	})
}

func TestACallUnderWayBeatsUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		f := start(t, library{"hangs": hangs(end)}, hook("hangs"))
		a := f.send(event(schema.PreToolUse))
		time.AfterFunc(1900*time.Millisecond, func() { close(end) })
		v, after := a.verdict()
		want(t, v, schema.Deny, "hangs:ok")
		if after != 1900*time.Millisecond || len(a.beats) != 7 || a.beats[0] != schema.BeatEvery || a.beats[6] != 7*schema.BeatEvery {
			t.Errorf("answered after %v with beats after %v", after, a.beats)
		}
		if !a.nothing() {
			t.Errorf("after the answer it still beats: %v", a.beats)
		}
	})
}

func TestAShortCallDoesNotBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{"yes": says(schema.Allowed())}, hook("yes"))
		a := f.send(event(schema.PreToolUse))
		a.verdict()
		if !a.nothing() || len(a.beats) != 0 {
			t.Errorf("%v", a.beats)
		}
	})
}

func TestTheAnswerComesBeforeTheAskersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		f := start(t, library{"hangs": hangs(end)}, hook("hangs", failClosed), hook("hangs"))
		for left, least := range map[time.Duration]time.Duration{100 * time.Millisecond: 40 * time.Millisecond, 10 * time.Second: 8 * time.Second} {
			m := event(schema.PreToolUse)
			m.Header.Set(schema.HeaderLeft, left.String())
			v, after := f.send(m).verdict()
			want(t, v, schema.Deny, "hangs:deadline")
			if after >= left || after < least {
				t.Errorf("with %v left it was answered after %v", left, after)
			}
		}
	})
}

func TestASecondAttemptRunsOnlyWhatMayRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{"once": says(schema.Denied("ran")), "twice": says(schema.Allowed())}, hook("once"), hook("twice", idempotent))
		m := event(schema.PreToolUse)
		m.Header.Set(schema.HeaderAttempt, "2")
		want(t, f.ask(m), schema.Allow, "once:lost twice:ok")
	})
}

func TestAboveItsBoundTheAggregatorHasEventsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		f := startWith(t, aggregator.Options{Calls: 1}, library{"hangs": hangs(end)}, hook("hangs"))
		first, second, third := f.send(event(schema.PreToolUse)), f.send(event(schema.PreToolUse)), f.send(event(schema.QueryEnd))
		if v, after := third.verdict(); v.Decision != schema.Continue || after > 200*time.Millisecond {
			t.Errorf("what no hook is asked about waited for %v: %+v", after, v)
		}
		<-time.After(400 * time.Millisecond)
		if n := len(first.replies) + len(second.replies); n != 0 || f.agg.Status().InFlight != 1 {
			t.Errorf("%d answers, %d under way", n, f.agg.Status().InFlight)
		}
		close(end)
		for _, a := range []*asking{first, second} {
			a.verdict()
		}
	})
}

func TestAVerdictThatIsTooLargeBlocksWhereItCan(t *testing.T) {
	// As JSON six times as large: two of them are more than a message holds.
	large := strings.Repeat("\x01", 900<<10)
	lib := library{"large": says(schema.Injected(large, schema.ToolResult)), "no": says(schema.Denied("no")),
		"stop": says(schema.Result{Decision: schema.Stop, Reason: "here", Value: jsontext.Value(`"enough"`)})}
	cases := map[string]struct {
		hooks  []schema.Hook
		event  schema.EventType
		want   schema.Decision
		reason string
	}{
		"a tool call is denied":      {[]schema.Hook{hook("large"), hook("large")}, schema.PreToolUse, schema.Deny, "the verdict has 11"},
		"a deny stays what it is":    {[]schema.Hook{hook("large"), hook("large"), hook("no")}, schema.PreToolUse, schema.Deny, "no"},
		"a model call fails":         {[]schema.Hook{hook("large", at(schema.BeforeLLMCall)), hook("large", at(schema.BeforeLLMCall))}, schema.BeforeLLMCall, schema.Fail, "the verdict has 11"},
		"what has happened, has":     {[]schema.Hook{hook("large", at(schema.PostToolUse)), hook("large", at(schema.PostToolUse))}, schema.PostToolUse, schema.Continue, ""},
		"a stop goes with its value": {[]schema.Hook{hook("large", at(schema.PostToolUse)), hook("large", at(schema.PostToolUse)), hook("stop", at(schema.PostToolUse))}, schema.PostToolUse, schema.Continue, "the verdict has 11"},
		"so does one before a tool":  {[]schema.Hook{hook("large"), hook("large"), hook("stop")}, schema.PreToolUse, schema.Deny, "the verdict has 11"},
		"feedback stays what it was": {[]schema.Hook{hook("large", at(schema.PostToolUse)), hook("large", at(schema.PostToolUse)), hook("no", at(schema.PostToolUse))}, schema.PostToolUse, schema.Deny, "no"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := start(t, lib, c.hooks...).ask(event(c.event))
				if v.Decision != c.want || !strings.HasPrefix(v.Reason, c.reason) || len(v.HookErrors) != 1 || len(v.Injections) != 0 || v.ConfigVersion != 1 {
					t.Errorf("%q %q %q, %d injections", v.Decision, v.Reason, v.HookErrors, len(v.Injections))
				}
				stopped := slices.ContainsFunc(c.hooks, func(h schema.Hook) bool { return h.Name == "stop" })
				if named := strings.HasSuffix(v.Reason, "the hook's stop and its value were dropped; its reason: here"); named != stopped {
					t.Errorf("the stop's reason: %q", v.Reason)
				}
			})
		})
	}
}

// broken is a worker in the aggregator's process that panics.
type broken struct{ *workers.Worker }

func (broken) Try(context.Context, *schema.Batch) (schema.BatchReply, bool) { panic("ouch") }

func TestAPanicLetsNoGuardedCallThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := broken{workers.New(workers.Options{Name: "local"})}
		f := startWith(t, aggregator.Options{Local: local}, library{"yes": says(schema.Allowed())}, hook("yes"), hook("yes", at(schema.PostToolUse)))
		want(t, f.ask(event(schema.PreToolUse)), schema.Continue, "yes:error")
		f.activate(2, hook("yes", failClosed))
		want(t, f.ask(event(schema.PreToolUse)), schema.Deny, "yes:error")
	})
}
