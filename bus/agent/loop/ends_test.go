package loop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// moments are the seven events of a query with a tool that works and one that fails, in
// order.
func moments() []schema.EventType {
	return []schema.EventType{schema.BeforeLLMCall, schema.AfterLLMCall, schema.PreToolUse, schema.PostToolUse,
		schema.ToolError, schema.BeforeFinalResponse, schema.QueryEnd}
}

// ends records the ends of queries in the program and in the fabric.
type ends struct{ local []loop.Response }

func (e *ends) watch(l *loop.Loop) {
	l.On(schema.QueryEnd).Named("watch").Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(_ context.Context, s *loop.Status) error {
		e.local = append(e.local, s.Response())
		return nil
	})))
}

// check fails unless program and fabric saw the end exactly once.
func (e *ends) check(t *testing.T, f *far, answer loop.Response) {
	t.Helper()
	if len(e.local) != 1 || e.local[0].Status != answer.Status || e.local[0].Error != answer.Error {
		t.Errorf("in-process hooks saw the ends %+v; it ended with %+v", e.local, answer)
	}
	n := 0
	for _, q := range f.questions() {
		if q.HookType != schema.QueryEnd {
			continue
		}
		n++
		var reported loop.Response
		if err := schema.Unmarshal(q.Response, &reported); err != nil {
			t.Error(err)
		}
		if reported.Status != answer.Status || reported.Error != answer.Error || reported.Iterations != answer.Iterations {
			t.Errorf("the fabric got %+v; it ended with %+v", reported, answer)
		}
	}
	if n != 1 {
		t.Errorf("the fabric got %d ends", n)
	}
}

// query is a query of two model calls, with a tool that works and one that fails.
func query(f *far) (loop.Options, *script) {
	model := &script{turns: []schema.Message{calls("add", `{"a":1,"b":2}`, "fail", `{}`), says("three")}}
	return loop.Options{Model: model, Tools: []loop.Tool{adding(), failing()}, Fabric: f.client}, model
}

// A hook hangs and ignores its context, at each event and under both policies. The query
// ends in time, as the table of failures says, and its end is reported once.
func TestAHangingHookDoesNotStopAQuery(t *testing.T) {
	for _, at := range moments() {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fail-closed %v", at, closed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := fabric(t, nil)
					o, _ := query(f)
					l := start(t, o)
					var heard ends
					heard.watch(l)
					release := make(chan struct{})
					defer close(release)
					r := l.On(at).Named("hangs").Within(3 * time.Second)
					if closed {
						r.FailClosed()
					}
					r.Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(context.Context, *loop.Status) error {
						<-release
						return nil
					})))
					began := time.Now()
					answer, err := l.Run(t.Context(), "1+2?")
					if took := time.Since(began); took > 10*time.Second {
						t.Errorf("it took %v", took)
					}
					failed := closed && (at == schema.BeforeLLMCall || at == schema.AfterLLMCall || at == schema.BeforeFinalResponse)
					if failed != (err != nil) || failed != (answer.Status == loop.Failed) || failed && !errors.Is(err, loop.ErrFailed) {
						t.Errorf("%+v, %v", answer, err)
					}
					if !failed && answer.Content != "three" {
						t.Errorf("%+v", answer)
					}
					if !strings.Contains(strings.Join(answer.HookErrors, "\n"), `hook "hangs": did not answer within 3s`) {
						t.Errorf("the hook errors are %q", answer.HookErrors)
					}
					denied := strings.Contains(strings.Join(talk(l.History()), "\n"), "was denied and did not run")
					if denied != (closed && at == schema.PreToolUse) {
						t.Errorf("%q", talk(l.History()))
					}
					heard.check(t, f, answer)
				})
			})
		}
	}
}

// The fabric does not answer at one event, under both policies.
func TestAQueryWithoutAVerdictFollowsThePolicy(t *testing.T) {
	for _, at := range moments() {
		for _, policy := range []loop.Unreachable{loop.Deny, loop.Allow} {
			t.Run(fmt.Sprintf("%s, allow %v", at, policy == loop.Allow), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := fabric(t, func(e *schema.Event, v *schema.Verdict) {
						if e.HookType == at {
							v.Decision = silence
						}
					})
					o, _ := query(f)
					o.Unreachable, o.EventTimeout = policy, 2*time.Second
					l := start(t, o)
					var heard ends
					heard.watch(l)
					answer, err := l.Run(t.Context(), "1+2?")
					failed := policy == loop.Deny && at.Blocking() == schema.Fail
					if failed != errors.Is(err, loop.ErrFailed) || !failed && (err != nil || answer.Content != "three") {
						t.Errorf("%+v, %v", answer, err)
					}
					if !strings.Contains(strings.Join(answer.HookErrors, "\n"), "no broker judged") {
						t.Errorf("the hook errors are %q", answer.HookErrors)
					}
					if len(heard.local) != 1 || heard.local[0].Status != answer.Status {
						t.Errorf("the ends %+v", heard.local)
					}
				})
			})
		}
	}
}

// The policy Allow does not allow a call that a known fail-closed hook guards, but allows
// all others.
func TestAGuardedCallIsNotAllowedWithoutAVerdict(t *testing.T) {
	for _, at := range []schema.EventType{schema.PreToolUse, schema.AfterLLMCall, schema.PostToolUse} {
		t.Run(string(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, func(e *schema.Event, v *schema.Verdict) {
					if e.HookType == at {
						v.Decision = silence
					}
				})
				f.Version, f.Signer = 7, bustest.Signer(1)
				f.Guards = []schema.PolicyHook{{Hook: "watch", Event: at, Matcher: "add", Guards: true}}
				o, _ := query(f)
				o.Unreachable, o.EventTimeout = loop.Allow, 2*time.Second
				l := start(t, o)
				answer, err := l.Run(t.Context(), "1+2?")
				lines := strings.Join(talk(l.History()), "\n")
				why := `the fail-closed hook "watch" guards this`
				switch at {
				case schema.AfterLLMCall:
					if !errors.Is(err, loop.ErrFailed) || !strings.Contains(answer.Error, why) {
						t.Errorf("%+v, %v", answer, err)
					}
				case schema.PreToolUse:
					if err != nil || strings.Count(lines, why) != 1 || !strings.Contains(lines, "database is gone") {
						t.Errorf("%+v, %v: %s", answer, err, lines)
					}
				default:
					if err != nil || strings.Contains(lines, why) || !strings.Contains(lines, "c1 add 3") {
						t.Errorf("%+v, %v: %s", answer, err, lines)
					}
				}
			})
		})
	}
}

// If a query is cancelled while a hook, the model or a tool runs, its end is reported
// once and soon.
func TestACancelledQueryReportsItsEnd(t *testing.T) {
	for _, where := range append(moments()[:6], "the model", "the tool") {
		t.Run(string(where), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, nil)
				why := errors.New("the user left")
				ctx, cancel := context.WithCancelCause(t.Context())
				hang := func() {
					time.AfterFunc(time.Second, func() { cancel(why) })
					<-ctx.Done()
				}
				o, model := query(f)
				o.Model = loop.ModelFunc(func(call context.Context, r *loop.Request) (schema.Message, error) {
					if where == "the model" {
						hang()
						return schema.Message{}, context.Cause(call)
					}
					return model.Call(call, r)
				})
				o.Tools[0].Call = func(context.Context, jsonValue) (any, error) {
					if where == "the tool" {
						hang()
					}
					return 3, nil
				}
				l := start(t, o)
				var heard ends
				heard.watch(l)
				if where.Known() {
					l.On(where).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(ctx context.Context, _ *loop.Status) error {
						hang()
						return context.Cause(ctx)
					})))
				}
				began := time.Now()
				answer, err := l.Run(ctx, "1+2?")
				if took := time.Since(began); took > time.Second+2*loop.DefaultEndTimeout {
					t.Errorf("it took %v", took)
				}
				if !errors.Is(err, loop.ErrCancelled) || !errors.Is(err, why) || answer.Status != loop.Cancelled {
					t.Errorf("%+v, %v", answer, err)
				}
				heard.check(t, f, answer)
				sound(t, l.History())
			})
		})
	}
}

// Each way in which a model fails.
func TestAModelsErrorEndsTheQuery(t *testing.T) {
	for name, call := range map[string]loop.ModelFunc{
		"an error": func(context.Context, *loop.Request) (schema.Message, error) {
			return schema.Message{}, errors.New("overloaded")
		},
		"a panic": func(context.Context, *loop.Request) (schema.Message, error) { panic("overloaded") },
		"a message of another role": func(context.Context, *loop.Request) (schema.Message, error) {
			return schema.Message{Role: "overloaded"}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, nil)
				l := start(t, loop.Options{Model: call, Fabric: f.client})
				var heard ends
				heard.watch(l)
				answer, err := l.Run(t.Context(), "1+2?")
				if !errors.Is(err, loop.ErrModel) || answer.Status != loop.ModelError || !strings.Contains(answer.Error, "overloaded") {
					t.Errorf("%+v, %v", answer, err)
				}
				heard.check(t, f, answer)
			})
		})
	}
}

// All other ways in which a query ends.
func TestEveryEndIsReportedOnce(t *testing.T) {
	retried := func(l *loop.Loop) {
		l.On(schema.AfterLLMCall).Named("never pleased").Handle(schema.Retry, loop.WithReason("again"))
	}
	for name, c := range map[string]struct {
		hooks  func(l *loop.Loop)
		remote func(e *schema.Event, v *schema.Verdict)
		option func(o *loop.Options)
		status loop.Ending
		err    error
		says   string
	}{
		"answered": {status: loop.Answered},
		"stopped": {hooks: func(l *loop.Loop) {
			l.On(schema.BeforeLLMCall).Handle(schema.Stop, loop.WithValue(says("from the cache")))
		}, status: loop.Stopped},
		"failed by a hook of the program": {hooks: func(l *loop.Loop) { l.On(schema.PostToolUse).Reject("a leak") },
			status: loop.Failed, err: loop.ErrFailed, says: "a leak"},
		"failed by a hook of the fabric": {remote: func(e *schema.Event, v *schema.Verdict) {
			if e.HookType == schema.PreToolUse {
				v.Decision, v.Reason = schema.Fail, "a leak"
			}
		}, status: loop.Failed, err: loop.ErrFailed, says: "a leak"},
		"refused prompt": {remote: func(e *schema.Event, v *schema.Verdict) {
			if e.HookType == schema.UserPromptSubmit {
				v.Decision, v.Reason = schema.Deny, "not here"
			}
		}, status: loop.Rejected, err: loop.ErrRejected, says: "not here"},
		"terminated": {remote: func(e *schema.Event, v *schema.Verdict) {
			if e.HookType == schema.PostToolUse {
				v.Terminate = &schema.Terminate{Reason: "time is up"}
			}
		}, status: loop.Terminated, err: loop.ErrTerminated, says: "time is up"},
		"too many iterations": {hooks: retried, option: func(o *loop.Options) { o.MaxIterations = 2 },
			status: loop.MaxIterations, err: loop.ErrMaxIterations, says: `after 2 of them hook "never pleased" asked for another attempt: again`},
		"a panic of the program's own": {option: func(o *loop.Options) {
			o.Verdict = func(e *schema.Event, _ *schema.Verdict) {
				if e.HookType == schema.AfterLLMCall {
					panic("a bug")
				}
			}
		}, status: loop.Failed, says: "a bug"},
		"a panic beside a tool": {option: func(o *loop.Options) {
			o.Output = func(c loop.Chunk) {
				if c.Kind == loop.ToolResultChunk {
					panic("a bug")
				}
			}
		}, status: loop.Failed, says: "a bug"},
		"a panic at the very end": {option: func(o *loop.Options) {
			o.Output = func(c loop.Chunk) {
				if c.Kind == loop.EndChunk {
					panic("a bug")
				}
			}
		}, status: loop.Answered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, c.remote)
				o, _ := query(f)
				if c.option != nil {
					c.option(&o)
				}
				l := start(t, o)
				var heard ends
				heard.watch(l)
				if c.hooks != nil {
					c.hooks(l)
				}
				answer, err := l.Run(t.Context(), "1+2?")
				ended := c.status != loop.Answered && c.status != loop.Stopped
				if answer.Status != c.status || ended != (err != nil) || c.err != nil && !errors.Is(err, c.err) {
					t.Errorf("%+v, %v", answer, err)
				}
				if !strings.Contains(answer.Error, c.says) {
					t.Errorf("the error is %q", answer.Error)
				}
				heard.check(t, f, answer)
				sound(t, l.History())
				if _, err := l.Run(t.Context(), "and then?"); errors.Is(err, loop.ErrRunning) {
					t.Error("the loop accepts no further query")
				}
			})
		})
	}
}

// sound fails if a conversation is invalid for every API.
func sound(t *testing.T, messages []schema.Message) {
	t.Helper()
	open := 0
	for i, m := range messages {
		switch {
		case m.Result != nil:
			open--
			if open < 0 {
				t.Errorf("message %d is a result without a call: %q", i+1, talk(messages))
			}
		case open > 0:
			t.Errorf("before message %d results are missing: %q", i+1, talk(messages))
		}
		open += len(m.ToolCalls)
	}
	if open > 0 {
		t.Errorf("calls have no results: %q", talk(messages))
	}
}
