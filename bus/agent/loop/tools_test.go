package loop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/schema"
)

// ranTools runs a turn of calls with hooks. It returns the results as the model reads
// them, the messages after them, and the tool events that hooks saw.
func ranTools(t *testing.T, turn schema.Message, tools []loop.Tool, hooks func(l *loop.Loop)) (results []string, err error) {
	t.Helper()
	l := start(t, loop.Options{Model: &script{turns: []schema.Message{turn, says("done")}}, Tools: tools})
	hooks(l)
	_, err = l.Run(t.Context(), "go")
	lines := talk(l.History())
	sound(t, l.History())
	return lines[2:], err
}

func TestHooksChangeCalls(t *testing.T) {
	add := calls("add", `{"a":1,"b":2}`)
	outcome := func(f func(o *schema.ToolOutcome)) loop.HandleOption {
		return loop.WithValueFunc(func(_ context.Context, _ *loop.Status, o schema.ToolOutcome) (schema.ToolOutcome, error) {
			f(&o)
			return o, nil
		})
	}
	for name, c := range map[string]struct {
		turn  schema.Message
		hooks func(l *loop.Loop)
		want  []string
		err   error
	}{
		"denied": {add, func(l *loop.Loop) { l.On(schema.PreToolUse).Handle(schema.Deny, loop.WithReason("no sums")) },
			[]string{"tool: c1 add The call was denied and did not run: no sums[]", "assistant: done"}, nil},
		"asked, without an approver": {add, func(l *loop.Loop) { l.On(schema.PreToolUse).Handle(schema.Ask) },
			[]string{"tool: c1 add The call did not run, since no person approved it: no reason was given[]", "assistant: done"}, nil},
		"failed: the query ends": {add, func(l *loop.Loop) { l.On(schema.PreToolUse).Reject("no sums") },
			[]string{"tool: c1 add The call did not run, since the query ends: a hook failed the query: no sums[]"}, loop.ErrFailed},
		"given another input": {add, func(l *loop.Loop) {
			l.On(schema.PreToolUse).Handle(schema.Allow, loop.WithValueFunc(func(_ context.Context, s *loop.Status, c schema.ToolCall) (schema.ToolCall, error) {
				c.Input = jsonValue(`{"a":40,"b":2}`)
				return c, nil
			}))
		}, []string{"tool: c1 add 42[]", "assistant: done"}, nil},
		"given another name, which is an error of the hook": {add, func(l *loop.Loop) {
			l.On(schema.PreToolUse).FailClosed().Handle(schema.Allow, loop.WithValue(schema.ToolCall{Name: "fail", Input: jsonValue(`{}`)}))
		}, []string{`tool: c1 add The call was denied and did not run: hook "PreToolUse-1" is fail-closed and gave no answer: ` +
			`the value is another call; a hook replaces the input of a call, not its name or its id[]`, "assistant: done"}, nil},
		"answered in the tool's place": {add, func(l *loop.Loop) {
			l.On(schema.PreToolUse).Handle(schema.Stop, loop.WithValueFunc(func(_ context.Context, _ *loop.Status, o schema.ToolOutcome) (schema.ToolOutcome, error) {
				o.Output = jsonValue(`"cached ` + o.Name + `"`)
				return o, nil
			}), loop.WithInjection("from the cache", schema.ToolResult))
			l.On(schema.PostToolUse).Reject("no tool ran")
		}, []string{`tool: c1 add "cached add"["from the cache"]`, "assistant: done"}, nil},
		"enriched": {add, func(l *loop.Loop) {
			l.On(schema.PostToolUse).Handle(schema.Continue, outcome(func(o *schema.ToolOutcome) { o.Output = jsonValue(`[` + string(o.Output) + `]`) }))
			l.On(schema.PostToolUse).Handle(schema.Continue, outcome(func(o *schema.ToolOutcome) { o.Output = jsonValue(`[` + string(o.Output) + `]`) }))
			l.On(schema.PostToolUse).Handle(schema.Continue, outcome(func(o *schema.ToolOutcome) { o.Notes = append(o.Notes, "twice") }))
		}, []string{`tool: c1 add [[3]]["twice"]`, "assistant: done"}, nil},
		"null in its place": {add, func(l *loop.Loop) {
			l.On(schema.PostToolUse).Handle(schema.Continue, outcome(func(o *schema.ToolOutcome) { o.Output = jsonValue(`null`) }))
		}, []string{`tool: c1 add null[]`, "assistant: done"}, nil},
		"objected to": {add, func(l *loop.Loop) { l.On(schema.PostToolUse).Handle(schema.Deny, loop.WithReason("check it")) },
			[]string{`tool: c1 add 3["Feedback on this result: check it"]`, "assistant: done"}, nil},
		"failed after it ran": {add, func(l *loop.Loop) { l.On(schema.PostToolUse).Reject("a leak") },
			[]string{`tool: c1 add 3["This result ended the query: a leak"]`}, loop.ErrFailed},
		"a tool's error, mended": {calls("fail", `{}`), func(l *loop.Loop) {
			l.On(schema.PostToolUse).Reject("it did not work")
			l.On(schema.ToolError).When(func(_ context.Context, s *loop.Status) (bool, error) {
				return strings.Contains(s.Error, "database"), nil
			}).
				Handle(schema.Continue, outcome(func(o *schema.ToolOutcome) { o.Error, o.Output = "", jsonValue(`"mended"`) }), loop.WithEffects(loop.Append("", "Tables: users.")))
		}, []string{`tool: c1 fail "mended"[]`, "system: Tables: users.", "assistant: done"}, nil},
		"an unknown tool": {calls("ghost", ``), func(l *loop.Loop) {
			l.On(schema.PostToolUse).Reject("nothing ran")
			l.On(schema.ToolError).Handle(schema.Continue, loop.WithInjection("there are others", ""), loop.WithInjection("look", schema.UserMessage))
		}, []string{`tool: c1 ghost there is no tool "ghost"["there are others"]`, "user: look", "assistant: done"}, nil},
		"input that is not an object": {calls("add", `[1,2]`), func(l *loop.Loop) {
			l.On(schema.PreToolUse).Reject("there is nothing to ask about")
			l.On(schema.ToolError).Handle(schema.Deny, loop.WithReason("write an object"))
		}, []string{`tool: c1 add the call of "add" did not run`, "assistant: done"}, nil},
		"input that is not JSON": {calls("add", `{"a":`), func(*loop.Loop) {},
			[]string{`tool: c1 add the call of "add" did not run`, "assistant: done"}, nil},
		"input that does not fit": {calls("add", `{"a":"one"}`), func(l *loop.Loop) {
			l.On(schema.ToolError).Handle(schema.Continue, outcome(func(o *schema.ToolOutcome) { o.Error = o.Error[:len("the input does not fit")] }))
		}, []string{`tool: c1 add the input does not fit[]`, "assistant: done"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ranTools(t, c.turn, []loop.Tool{adding(), failing()}, c.hooks)
			if !errors.Is(err, c.err) {
				t.Error(err)
			}
			if strings.Contains(name, "input that is no") {
				got[0] = got[0][:min(len(got[0]), len(c.want[0]))] // the rest belongs to the renderer
			}
			same(t, "what came of it", c.want, got)
		})
	}
}

// Tools of a turn run concurrently up to the limit. Results and messages of hooks come in
// the order of the calls, and each call has exactly one event after it.
func TestResultsOfATurnAreInTheOrderOfCalls(t *testing.T) {
	for _, parallel := range []int{1, 2, 8} {
		t.Run(fmt.Sprint(parallel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now, most atomic.Int32
				slow := loop.ToolFunc("slow", "", func(_ context.Context, in struct{ N int }) (int, error) {
					most.Store(max(most.Load(), now.Add(1)))
					defer now.Add(-1)
					<-time.After(time.Duration(10-in.N) * time.Second)
					if in.N == 2 {
						return 0, errors.New("two")
					}
					if in.N == 3 {
						panic("three")
					}
					return in.N, nil
				})
				turn := calls("slow", `{"N":1}`, "slow", `{"N":2}`, "slow", `{"N":3}`, "slow", `{"N":4}`)
				l := start(t, loop.Options{Model: &script{turns: []schema.Message{turn, says("done")}}, Tools: []loop.Tool{slow}, Parallel: parallel})
				var mu sync.Mutex
				events := map[string]int{}
				for _, at := range []schema.EventType{schema.PostToolUse, schema.ToolError} {
					l.On(at).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(_ context.Context, s *loop.Status) error {
						mu.Lock()
						events[s.ToolResult.ID]++
						mu.Unlock()
						return s.Append("", "about "+s.ToolResult.ID)
					})))
				}
				if _, err := l.Run(t.Context(), "go"); err != nil {
					t.Fatal(err)
				}
				same(t, "conversation", []string{"tool: c1 slow 1[]", "tool: c2 slow two[]", "tool: c3 slow the tool panicked: three[]", "tool: c4 slow 4[]",
					"system: about c1", "system: about c2", "system: about c3", "system: about c4", "assistant: done"}, talk(l.History())[2:])
				same(t, "events about each call", map[string]int{"c1": 1, "c2": 1, "c3": 1, "c4": 1}, events)
				if want := int32(min(parallel, 4)); most.Load() != want {
					t.Errorf("%d ran side by side, not %d", most.Load(), want)
				}
			})
		})
	}
}

// A call that ends the query cancels the running calls of its turn, and the waiting ones
// are not made.
func TestACallThatEndsTheQueryCancelsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		add := adding()
		add.Call = func(context.Context, jsonValue) (any, error) { <-begun; return 3, nil }
		wait := loop.ToolFunc("wait", "", func(ctx context.Context, _ struct{}) (int, error) {
			close(begun)
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		turn := calls("wait", `{}`, "add", `{"a":1,"b":2}`, "add", `{"a":3,"b":4}`)
		l := start(t, loop.Options{Model: &script{turns: []schema.Message{turn}}, Tools: []loop.Tool{add, wait}, Parallel: 2})
		l.On(schema.PostToolUse).Reject("enough")
		began := time.Now()
		if _, err := l.Run(t.Context(), "go"); !errors.Is(err, loop.ErrFailed) {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		same(t, "conversation", []string{"tool: c1 wait another call of the turn ended it[]", `tool: c2 add 3["This result ended the query: enough"]`,
			"tool: c3 add The call was not made: another call of the turn ended it[]"}, talk(l.History())[2:])
	})
}

// The request for a person's approval ends with the turn of the call.
func TestAnApprovalEndsWithItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		add := adding()
		add.Call = func(context.Context, jsonValue) (any, error) { <-asked; return 3, nil }
		l := start(t, loop.Options{Model: &script{turns: []schema.Message{calls("fail", `{}`, "add", `{"a":1,"b":2}`)}}, Tools: []loop.Tool{add, failing()},
			Approve: func(ctx context.Context, _ schema.ToolCall, _ string) (bool, error) {
				close(asked)
				<-ctx.Done()
				return false, context.Cause(ctx)
			}})
		l.On(schema.PreToolUse).When(func(_ context.Context, s *loop.Status) (bool, error) { return s.ToolCall.Name == "fail", nil }).Handle(schema.Ask)
		l.On(schema.PostToolUse).Reject("enough")
		if _, err := l.Run(t.Context(), "go"); !errors.Is(err, loop.ErrFailed) {
			t.Error(err)
		}
		same(t, "conversation", []string{"tool: c1 fail The call did not run, since no person approved it: no reason was given[]",
			`tool: c2 add 3["This result ended the query: enough"]`}, talk(l.History())[2:])
	})
}

func TestAPersonCanApproveACall(t *testing.T) {
	for _, yes := range []bool{true, false} {
		var asked string
		l := start(t, loop.Options{Model: &script{turns: []schema.Message{calls("add", `{"a":1,"b":2}`), says("done")}}, Tools: []loop.Tool{adding()},
			Approve: func(_ context.Context, c schema.ToolCall, reason string) (bool, error) {
				asked = c.Name + ": " + reason
				return yes, nil
			}})
		l.On(schema.PreToolUse).Handle(schema.Ask, loop.WithReason("sums are dear"))
		if _, err := l.Run(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if ran := strings.Contains(talk(l.History())[2], "add 3"); ran != yes || asked != "add: sums are dear" {
			t.Errorf("approved %v, asked %q: %q", yes, asked, talk(l.History())[2])
		}
	}
}
