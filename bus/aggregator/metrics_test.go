package aggregator_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMetricsAreThereBeforeAnythingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{}, hook("x"), hook("y", remote))
		for _, h := range []string{"hook=x", "hook=y"} {
			for _, kind := range schema.OutcomeKinds() {
				if n := f.value("hook_outcomes_total", h, "outcome="+string(kind)); n != 0 {
					t.Errorf("%s, %s: %v", h, kind, n)
				}
				if kind == schema.OK || kind == schema.Late {
					continue
				}
				if open, closed := f.value("fail_open_total", "cause="+string(kind), h), f.value("fail_closed_total", "cause="+string(kind), h); open != 0 || closed != 0 {
					t.Errorf("%s, %s: %v, %v", h, kind, open, closed)
				}
			}
			if f.value("hook_seconds", h) != 0 || f.value("condition_errors_total", h) != 0 {
				t.Errorf("%s: no histogram", h)
			}
		}
		for _, p := range []string{"pool=default", "pool=p"} {
			if f.value("queue_seconds", p) != 0 || f.value("batch_hooks", p) != 0 || f.value("reruns_total", p) != 0 {
				t.Errorf("%s: not there", p)
			}
		}
		for _, e := range schema.EventTypes() {
			for _, d := range e.Decisions() {
				if n := f.value("requests_total", "decision="+string(d), "event="+string(e)); n != 0 {
					t.Errorf("%s, %s: %v", e, d, n)
				}
			}
		}
		for _, cause := range []string{"busy", "stale"} {
			if n := f.value("shed_total", "cause="+cause); n != 0 {
				t.Errorf("%s: %v", cause, n)
			}
		}
		for _, name := range []string{"malformed_total", "feed_dropped_total", "shadow_dropped_total", "in_flight"} {
			if n := f.value(name); n != 0 {
				t.Errorf("%s: %v", name, n)
			}
		}
	})
}

func TestWhatHappensIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := func(context.Context, *schema.Event) (schema.Result, error) {
			return schema.Result{}, errors.New("ouch")
		}
		f := start(t, library{"fails": fails, "yes": says(schema.Allowed())},
			hook("yes"), hook("fails"), hook("fails", at(schema.PostToolUse), failClosed), hook("fails", failClosed, func(h *schema.Hook) { h.Name = "guard" }))
		want(t, f.ask(event(schema.PreToolUse)), schema.Deny, "yes:ok fails:error guard:error")
		want(t, f.ask(event(schema.PostToolUse)), schema.Continue, "fails:error")
		for _, c := range []struct {
			name   string
			labels []string
			want   float64
		}{
			{"requests_total", []string{"decision=deny", "event=PreToolUse"}, 1},
			{"requests_total", []string{"decision=continue", "event=PostToolUse"}, 1},
			{"request_seconds", []string{"event=PreToolUse"}, 1},
			{"hook_outcomes_total", []string{"hook=yes", "outcome=ok"}, 1},
			{"hook_outcomes_total", []string{"hook=fails", "outcome=error"}, 2},
			{"fail_open_total", []string{"cause=error", "hook=fails"}, 2},
			{"fail_closed_total", []string{"cause=error", "hook=guard"}, 1},
			{"fail_open_total", []string{"cause=error", "hook=guard"}, 0},
			{"batch_hooks", []string{"pool=default"}, 2},
		} {
			if n := f.value(c.name, c.labels...); n != c.want {
				t.Errorf("%s %v is %v, not %v", c.name, c.labels, n, c.want)
			}
		}
	})
}

func TestSeriesFollowTheConfigurationAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{"yes": says(schema.Allowed())}, hook("yes"), hook("old"))
		m := event(schema.PreToolUse)
		m.Subject = "hook.v1.event.some-agent.PreToolUse"
		m.Header.Set(schema.HeaderTool, "some-tool")
		f.ask(m)
		f.activate(2, hook("yes"), hook("new"))
		if f.value("hook_outcomes_total", "hook=old", "outcome=ok") != -1 || f.value("hook_outcomes_total", "hook=new", "outcome=ok") != 0 {
			t.Error("the series are still those of the configuration before")
		}
		families, err := f.reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		known := []string{"event", "decision", "pool", "hook", "outcome", "cause", "source", "scope", "when", "limit"}
		for _, family := range families {
			for _, series := range family.GetMetric() {
				for _, l := range series.GetLabel() {
					if !slices.Contains(known, l.GetName()) {
						t.Errorf("%s has a label %s=%q", family.GetName(), l.GetName(), l.GetValue())
					}
				}
			}
		}
	})
}

func TestWaitingForAWorkerIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{}, hook("x", remote, within(2*time.Second), failClosed))
		f.worker("w").beat(schema.Beat{Capacity: 1, InFlight: 1})
		synctest.Wait()
		a := f.send(event(schema.PreToolUse))
		// Its beats keep it alive, and full.
		w := &fakeWorker{f: f, name: "w", nc: f.shim}
		for range 12 {
			<-time.After(schema.BeatEvery)
			w.beat(schema.Beat{Capacity: 1, InFlight: 1})
		}
		v, after := a.verdict()
		want(t, v, schema.Deny, "x:busy")
		if n := f.value("queue_seconds", "pool=p"); n < 1 || after < 2*time.Second || after > 2500*time.Millisecond {
			t.Errorf("%v waits, answered after %v", n, after)
		}
	})
}

// unanswerable is a condition that cannot be evaluated.
type unanswerable struct{}

func (unanswerable) Holds(*dispatch.View) (bool, error) { return false, errors.New("no such key") }

func TestConditionsThatCanNotBeEvaluatedAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := aggregator.Options{Conditions: func(string) (dispatch.Condition, error) { return unanswerable{}, nil }}
		f := startWith(t, opt, library{"x": says(schema.Denied("asked"))}, hook("x", func(h *schema.Hook) { h.When = "?" }))
		want(t, f.ask(event(schema.PreToolUse)), schema.Deny, "x:ok")
		if n := f.value("condition_errors_total", "hook=x"); n != 1 {
			t.Errorf("%v", n)
		}
	})
}
