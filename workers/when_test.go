package workers_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// asked adds a condition to a handler.
func asked(cond workers.Condition, h workers.HandlerFunc) workers.Handler {
	return workers.When(cond, h)
}

// handlers is a runner of named handlers.
type handlers map[string]workers.Handler

func (l handlers) Load(h schema.Hook, _ workers.Site) (workers.Handler, error) {
	return l[h.Handler], nil
}
func (l handlers) Close() error { return nil }

// conditions are conditions, by the way in which they get their result.
var conditions = map[string]workers.Condition{
	"true":  func(context.Context, *schema.LoopStatus, *schema.Event) (bool, error) { return true, nil },
	"false": func(context.Context, *schema.LoopStatus, *schema.Event) (bool, error) { return false, nil },
	"fails": func(context.Context, *schema.LoopStatus, *schema.Event) (bool, error) {
		return false, errors.New("no database")
	},
	"panics": func(context.Context, *schema.LoopStatus, *schema.Event) (bool, error) { panic("no database") },
	"hangs": func(ctx context.Context, _ *schema.LoopStatus, _ *schema.Event) (bool, error) {
		<-ctx.Done()
		return false, nil
	},
	"goes": func(context.Context, *schema.LoopStatus, *schema.Event) (bool, error) {
		runtime.Goexit()
		return true, nil
	},
}

var bodies = map[string]workers.HandlerFunc{
	"denies": func(context.Context, *schema.Event) (schema.Result, error) { return schema.Denied("no"), nil },
	"fails": func(context.Context, *schema.Event) (schema.Result, error) {
		return schema.Result{}, errors.New("out of luck")
	},
	"panics": func(context.Context, *schema.Event) (schema.Result, error) { panic("out of luck") },
}

func TestHooksWithConditionsUnderBothPolicies(t *testing.T) {
	const failed, panicked = "its condition failed: no database, and counts as true", "its condition panicked: no database, and counts as true"
	for _, c := range []struct {
		condition, handler string
		kind               schema.OutcomeKind
		open, closed       schema.Decision
		errors             []string // each begins one of hook_errors
	}{
		{"true", "denies", schema.OK, schema.Deny, schema.Deny, nil},
		{"true", "fails", schema.Errored, schema.None, schema.Deny, []string{"out of luck"}},
		{"true", "panics", schema.Errored, schema.None, schema.Deny, []string{"panicked: out of luck"}},
		{"false", "denies", schema.OK, schema.None, schema.None, nil},
		{"false", "fails", schema.OK, schema.None, schema.None, nil},
		{"false", "panics", schema.OK, schema.None, schema.None, nil},
		{"fails", "denies", schema.OK, schema.Deny, schema.Deny, []string{failed}},
		{"fails", "fails", schema.Errored, schema.None, schema.Deny, []string{"out of luck; " + failed}},
		{"fails", "panics", schema.Errored, schema.None, schema.Deny, []string{"panicked: out of luck"}},
		{"panics", "denies", schema.OK, schema.Deny, schema.Deny, []string{panicked}},
		{"panics", "fails", schema.Errored, schema.None, schema.Deny, []string{"out of luck; " + panicked}},
		{"hangs", "denies", schema.Deadline, schema.None, schema.Deny, []string{"did not answer within its timeout of 5s"}},
		{"goes", "denies", schema.Errored, schema.None, schema.Deny, []string{"ended its goroutine instead of returning"}},
	} {
		for failClosed, want := range map[bool]schema.Decision{false: c.open, true: c.closed} {
			t.Run(fmt.Sprintf("condition %s, handler %s, fail_closed %v", c.condition, c.handler, failClosed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := hook("h")
					h.FailClosed, h.Timeout = failClosed, schema.Duration(5*time.Second)
					w := newWorker(nil, schema.Config{}, runs(handlers{"h": asked(conditions[c.condition], bodies[c.handler])}))
					w.Load(config(h))
					r := w.Run(t.Context(), batch(0))
					wantKinds(t, r, "0:"+string(c.kind))
					v := dispatch.Settle(&h, &r.Outcomes[0])
					if v.Decision != want {
						t.Errorf("the verdict is %q, want %q: %+v", v.Decision, want, v)
					}
					if !slices.EqualFunc(v.HookErrors, c.errors, func(got, want string) bool {
						return strings.HasPrefix(got, `hook "h": `+want)
					}) {
						t.Errorf("errors %q, want %q", v.HookErrors, c.errors)
					}
				})
			})
		}
	}
}

// runs makes a worker run the handlers in l.
func runs(l handlers, inline ...schema.Kind) func(*workers.Options) {
	return func(o *workers.Options) {
		o.Runners, o.Inline = map[schema.Kind]workers.Runner{schema.Builtin: l}, inline
	}
}

func TestTheHooksTimeoutLimitsConditionsOfInlineHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hook("h")
		h.Timeout = schema.Duration(5 * time.Second)
		w := newWorker(nil, schema.Config{}, runs(handlers{"h": asked(conditions["hangs"], bodies["denies"])}, schema.Builtin))
		w.Load(config(h))
		wantKinds(t, w.Run(t.Context(), batch(0)), "0:deadline")
	})
}

func TestAConditionReadsTheStatusOfTheEvent(t *testing.T) {
	var seen schema.LoopStatus
	var iteration int
	h := workers.When(func(_ context.Context, s *schema.LoopStatus, e *schema.Event) (bool, error) {
		seen, iteration = *s, e.Iteration
		return strings.Contains(s.AssistantMessage.Content, "INVALID"), nil
	}, workers.HandlerFunc(func(context.Context, *schema.Event) (schema.Result, error) {
		return schema.Retried("say it otherwise", schema.Append("", "Say it otherwise.")), nil
	}))
	e := &schema.Event{HookType: schema.AfterLLMCall, AgentID: "a", Iteration: 2, Message: jsontext.Value(`{"content":"INVALID"}`)}
	got, err := h.Handle(t.Context(), e)
	want := schema.Retried("say it otherwise", schema.Append("", "Say it otherwise."))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, the answer differs (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(e.LoopStatus(), seen); diff != "" || iteration != 2 {
		t.Errorf("iteration %d, the status differs (-want +got):\n%s", iteration, diff)
	}
	e.Message = jsontext.Value(`"fine"`)
	if got, err := h.Handle(t.Context(), e); err != nil || got.Decision != schema.None {
		t.Errorf("where it is false: %+v, %v", got, err)
	}
}

func TestConditionsReadRewritesOfEarlierHooks(t *testing.T) {
	above := func(n string) workers.Condition {
		return func(_ context.Context, s *schema.LoopStatus, _ *schema.Event) (bool, error) {
			return string(s.ToolCall.Input) == n, nil
		}
	}
	l := handlers{
		"count":  workers.HandlerFunc(counting),
		"first":  asked(above(`{"n":1}`), counting),
		"second": asked(above(`{"n":1}`), counting), // by now it is 2
		"third":  asked(above(`{"n":2}`), bodies["denies"]),
		"last":   asked(conditions["true"], bodies["panics"]),
	}
	w := newWorker(nil, schema.Config{}, runs(l))
	w.Load(config(hook("count"), hook("first"), hook("second"), hook("third"), hook("last")))
	r := w.Run(t.Context(), batch(0, 1, 2, 3, 4))
	wantKinds(t, r, "0:ok 1:ok 2:ok 3:ok")
	var inputs []string
	for _, o := range r.Outcomes {
		inputs = append(inputs, string(o.Result.UpdatedInput))
	}
	if diff := cmp.Diff([]string{`{"n":1}`, `{"n":2}`, "", ""}, inputs); diff != "" {
		t.Errorf("the event after each (-want +got):\n%s", diff)
	}
}

// closer is a handler that counts its Close calls.
type closer struct {
	workers.HandlerFunc
	closed *int
}

func (c closer) Close() error { *c.closed++; return nil }

func TestAHandlerWithAConditionIsClosed(t *testing.T) {
	closed := 0
	h := workers.When(conditions["true"], closer{allows, &closed})
	w := newWorker(nil, schema.Config{}, runs(handlers{"h": h, "plain": asked(conditions["true"], allows)}), func(o *workers.Options) { o.Linger = -1 })
	w.Load(config(hook("h"), hook("plain")))
	for v := range uint64(3) {
		w.Load(schema.Config{Version: v + 2})
	}
	if err := w.Close(); err != nil || closed != 1 {
		t.Errorf("closed %d times, error %v", closed, err)
	}
}
