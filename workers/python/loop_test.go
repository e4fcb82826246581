package python

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// silent returns options without a log, for hooks that fail on purpose.
func silent() Options { return Options{Logger: slog.New(slog.DiscardHandler)} }

// judged runs hooks for e, one after the other, and folds their outcomes.
func judged(t *testing.T, r *Runner, e *schema.Event, hooks ...schema.Hook) schema.Verdict {
	t.Helper()
	return runnertest.Judge(t, r, testdata(t), e, hooks...)
}

func TestConditionsUnderBothPolicies(t *testing.T) { //nolint:tparallel // its cases take turns on the hosts of one runner
	t.Parallel()
	r := newRunner(t, silent())
	const counts = "its condition raised %s, and counts as true"
	raised := []string{fmt.Sprintf(counts, "ValueError: no database")}
	for condition, c := range map[string]struct {
		open, closed schema.Decision
		errors       []string
	}{
		"true":   {schema.Deny, schema.Deny, nil},
		"false":  {schema.None, schema.None, nil},
		"raises": {schema.Deny, schema.Deny, raised},
		"exits":  {schema.Deny, schema.Deny, []string{fmt.Sprintf(counts, "SystemExit: 3")}},
		"odd":    {schema.Deny, schema.Deny, []string{fmt.Sprintf(counts, "ValueError: no truth")}},
		"dies":   {schema.None, schema.Deny, []string{"was lost: its host process exited with code 7"}},
	} {
		for _, handler := range []string{condition + "_says", condition + "_says_later", "later_" + condition + "_says", "later_" + condition + "_says_later"} {
			for failClosed, want := range map[bool]schema.Decision{false: c.open, true: c.closed} {
				t.Run(fmt.Sprintf("%s, fail_closed %v", handler, failClosed), func(t *testing.T) {
					h := sharing("loop." + handler)
					h.FailClosed = failClosed
					v := judged(t, r, runnertest.Event("Bash"), h)
					if v.Decision != want || !runnertest.Match(v.HookErrors, c.errors) {
						t.Errorf("decision %q, errors %q; want %q, %q", v.Decision, v.HookErrors, want, c.errors)
					}
				})
			}
		}
	}
}

func TestAConditionHasTheHooksTimeUnderBothPolicies(t *testing.T) { //nolint:tparallel // its cases take turns on the hosts of one runner
	t.Parallel()
	r := newRunner(t, silent())
	for handler, says := range map[string]string{
		"hangs_says": "its timeout of 300ms", "hangs_says_later": "its timeout of 300ms",
		"sleeps_says": "its timeout of 300ms", "sleeps_says_later": "its timeout of 300ms",
	} {
		for failClosed, want := range map[bool]schema.Decision{false: schema.None, true: schema.Deny} {
			t.Run(fmt.Sprintf("%s, fail_closed %v", handler, failClosed), func(t *testing.T) {
				h := sharing("loop." + handler)
				h.FailClosed, h.Timeout = failClosed, schema.Duration(300*time.Millisecond)
				v := judged(t, r, runnertest.Event("Bash"), h)
				if v.Decision != want || !runnertest.Match(v.HookErrors, []string{says}) || v.ExecutedHooks[0].Outcome != schema.Deadline {
					t.Errorf("%+v", v)
				}
			})
		}
	}
	if v := judged(t, r, runnertest.Event("Bash"), sharing("loop.says_later")); v.Reason != "no" {
		t.Errorf("another hook, afterwards: %+v", v)
	}
}

func TestACoroutineConditionIsCancelledAndItsHostLivesOn(t *testing.T) {
	l := runnertest.NewLifeline(t)
	r, hook := lively(t, l, Options{})
	r.wait.grace = runnertest.Patience // none is killed for being slow to end
	hook = asCoroutine(hook)
	p := load(t, r, hook, oneHost())
	hook.Handler = "loop.told_says_later"
	h := load(t, r, hook, oneHost())
	before := says(t, p, "answers")
	ctx, cancel := context.WithCancel(t.Context())
	failed := goes(ctx, t, h, "sleeps")
	runnertest.Await(t, l.Held(), "the condition to wait")
	cancel()
	if err := fails(t, failed); !strings.Contains(err.Error(), "was cancelled") {
		t.Errorf("error %v", err)
	}
	if after := says(t, p, "answers"); after != before {
		t.Errorf("host %s was replaced by %s", before, after)
	}
}

func TestConditionsOfAllKindsOfCallables(t *testing.T) { //nolint:tparallel // its cases take turns on the hosts of one runner
	t.Parallel()
	r := newRunner(t, silent())
	for handler, c := range map[string]struct {
		tool, reason string
		errors       []string
	}{
		"policy":              {tool: "Write", reason: "no"},
		"policy.method":       {tool: "Write", reason: "no"},
		"locked":              {tool: "Bash", reason: "no"},
		"true_own_loop":       {tool: "Bash", reason: "no"},
		"partial_false":       {tool: "Bash"},
		"false_raises":        {tool: "Bash"},
		"raises_silent":       {tool: "Bash", errors: []string{"its condition raised ValueError: no database, and counts as true"}},
		"true_raises":         {tool: "Bash", errors: []string{`"loop.true_raises" raised ValueError: no database`}},
		"raises_raises":       {tool: "Bash", errors: []string{"raised ValueError: no database; its condition raised ValueError: no database, and counts as true"}},
		"later_raises_raises": {tool: "Bash", errors: []string{"raised ValueError: no database; its condition raised ValueError: no database, and counts as true"}},
	} {
		t.Run(handler, func(t *testing.T) {
			v := judged(t, r, runnertest.Event(c.tool), hookOf("loop."+handler))
			if v.Reason != c.reason || !runnertest.Match(v.HookErrors, c.errors) {
				t.Errorf("reason %q, errors %q", v.Reason, v.HookErrors)
			}
			if strings.HasPrefix(handler, "policy") {
				if v := judged(t, r, runnertest.Event("Bash"), hookOf("loop."+handler)); v.Decision != schema.None {
					t.Errorf("where it is false: %+v", v)
				}
			}
		})
	}
	_, err := r.Load(hookOf("loop.unfit"), workers.Site{Dirs: testdata(t)})
	if err == nil || !strings.Contains(err.Error(), "its condition is of the type str; write a function of the event") {
		t.Errorf("a condition that is not a function: %v", err)
	}
}

func TestFailingPartsOfAHookUnderBothPolicies(t *testing.T) { //nolint:tparallel // its cases take turns on the hosts of one runner
	t.Parallel()
	r := newRunner(t, silent())
	e := runnertest.Event("")
	e.HookType, e.Message = schema.AfterLLMCall, jsontext.Value(`"hello"`)
	for fault, says := range map[string]string{
		"raises": "raised ValueError: no database", "exits": "raised SystemExit: 3", "dies": "was lost: its host process exited with code 7",
	} {
		for _, part := range []string{"effect", "value", "condition"} {
			for _, word := range []string{fault, "later_" + fault} {
				for failClosed, want := range map[bool]schema.Decision{false: schema.None, true: schema.Fail} {
					if part == "condition" && fault != "dies" {
						want = schema.Fail // it counts as true, and the hook says fail
					}
					t.Run(fmt.Sprintf("%s %s, fail_closed %v", part, word, failClosed), func(t *testing.T) {
						h := hookOf("loop." + part + "_" + word)
						h.FailClosed = failClosed
						v := judged(t, r, e, h)
						if v.Decision != want || len(v.Effects) > 0 || v.Value != nil || !runnertest.Match(v.HookErrors, []string{says}) {
							t.Errorf("%+v", v)
						}
					})
				}
			}
		}
	}
}
