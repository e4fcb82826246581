package loop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// on applies a verdict to one event only.
func on(t schema.EventType, f func(e *schema.Event, v *schema.Verdict)) func(*schema.Event, *schema.Verdict) {
	return func(e *schema.Event, v *schema.Verdict) {
		if e.HookType == t {
			f(e, v)
		}
	}
}

// Remote hooks see the changes of the program's hooks, or the other way round, as the
// order says. Flags and the iteration are sent. A remote rewrite replaces the value.
func TestRemoteHooksArePartOfTheChain(t *testing.T) {
	for _, order := range []loop.Order{loop.InProcessFirst, loop.RemoteFirst} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, func(e *schema.Event, v *schema.Verdict) {
					switch e.HookType {
					case schema.BeforeFinalResponse:
						m, err := schema.ReadMessage(e.Message)
						if err != nil {
							t.Error(err)
						}
						v.Value, _ = schema.Marshal(m.Content + "R")
						v.Effects = []jsontext.Value{[]byte(`{"set_flag":{"seen":2}}`), []byte(`{"append_message":{"content":"remote"}}`), []byte(`{"shout":{}}`)}
					case schema.PreToolUse:
						v.UpdatedInput = []byte(strings.Replace(string(e.ToolInput), "{", `{"c":0,`, 1))
						if e.ToolName == "fail" {
							v.UpdatedInput = []byte(`{"c":0}`)
						}
					case schema.PostToolUse:
						v.UpdatedOutput = []byte("[" + string(e.ToolOutput) + "]")
					}
				})
				o, _ := query(f)
				o.Order = order
				l := start(t, o)
				d := &diary{}
				l.On(schema.BeforeFinalResponse).Handle(schema.Continue, loop.WithEffects(loop.Append("", "local"), loop.SetFlag("seen", 1)), d.value("L"))
				l.On(schema.PostToolUse).Handle(schema.Continue, loop.WithValueFunc(func(_ context.Context, s *loop.Status, o schema.ToolOutcome) (schema.ToolOutcome, error) {
					o.Output = jsonValue(`{"is":` + string(o.Output) + `}`)
					return o, nil
				}))
				answer, err := l.Run(t.Context(), "1+2?")
				if err != nil {
					t.Fatal(err)
				}
				lines := talk(l.History())
				if order == loop.InProcessFirst {
					same(t, "answer", "threeLR", answer.Content)
					same(t, "result", `tool: c1 add [{"is":3}][]`, lines[2])
					same(t, "flags", `{"seen":1}`, string(f.of(schema.BeforeFinalResponse).Flags))
					same(t, "flags at the end", `{"seen":2}`, string(f.of(schema.QueryEnd).Flags))
					same(t, "effects", []string{"system: local", "system: remote"}, lines[len(lines)-2:])
				} else {
					same(t, "answer", "threeRL", answer.Content)
					same(t, "result", `tool: c1 add {"is":[3]}[]`, lines[2])
					same(t, "flags at the end", `{"seen":1}`, string(f.of(schema.QueryEnd).Flags))
					same(t, "effects", []string{"system: remote", "system: local"}, lines[len(lines)-2:])
				}
				if len(answer.HookErrors) != 1 || !strings.Contains(answer.HookErrors[0], "effect dropped") {
					t.Errorf("the hook errors are %q", answer.HookErrors)
				}
				same(t, "events", []schema.EventType{schema.UserPromptSubmit, schema.BeforeLLMCall, schema.AfterLLMCall}, f.events()[:3])
				same(t, "the last", []schema.EventType{schema.BeforeLLMCall, schema.AfterLLMCall, schema.BeforeFinalResponse, schema.QueryEnd}, f.events()[len(f.events())-4:])
				if e := f.of(schema.BeforeFinalResponse); e.Iteration != 2 || e.AgentID != "agent1" || e.Runtime != "generic" {
					t.Errorf("%+v", e)
				}
				if e := f.of(schema.ToolError); e.Error != "database is gone" || e.ToolName != "fail" || e.ToolUseID != "c2" || string(e.ToolInput) != `{"c":0}` {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// The fabric is not asked after a decision of the program that ends the chain. At events
// that do not chain it is asked, and the greatest decision wins.
func TestTheFabricIsNotAskedAfterTheChainEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fabric(t, on(schema.PostToolUse, func(_ *schema.Event, v *schema.Verdict) { v.Decision, v.Reason = schema.Deny, "remote" }))
		o, _ := query(f)
		l := start(t, o)
		l.On(schema.PreToolUse).When(func(_ context.Context, s *loop.Status) (bool, error) { return s.ToolCall.Name == "fail", nil }).Handle(schema.Deny, loop.WithReason("local"))
		l.On(schema.PostToolUse).Handle(schema.Deny, loop.WithReason("local"))
		if _, err := l.Run(t.Context(), "1+2?"); err != nil {
			t.Fatal(err)
		}
		n := map[schema.EventType]int{}
		for _, e := range f.events() {
			n[e]++
		}
		same(t, "questions about tools", []int{1, 1, 0}, []int{n[schema.PreToolUse], n[schema.PostToolUse], n[schema.ToolError]})
		same(t, "results", []string{`tool: c1 add 3["Feedback on this result: local"]`, "tool: c2 fail The call was denied and did not run: local[]"}, talk(l.History())[2:4])
	})
}

// Items are acknowledged after a model call has read them, and not before: in the result,
// or in a message after all results. Chunks show them as injections.
func TestItemsAreAcknowledgedAfterTheNextModelCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fabric(t, nil)
		o, model := query(f)
		var shown []string
		o.Output = func(c loop.Chunk) {
			if c.Kind == loop.InjectionChunk {
				shown = append(shown, c.Text)
			}
		}
		o.Parallel = 1
		ask := o.Model.Call
		o.Model = loop.ModelFunc(func(ctx context.Context, r *loop.Request) (schema.Message, error) {
			left := len(f.left())
			if r.Iteration == 2 && left != 2 {
				t.Errorf("before the model has them %d of 2 items wait", left)
			}
			<-time.After(2 * time.Minute) // longer than a lease, which is renewed
			return ask(ctx, r)
		})
		l := start(t, o)
		l.On(schema.PreToolUse).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(context.Context, *loop.Status) error {
			if f.of(schema.PreToolUse).EventID == "" {
				user := bustest.Item(2, "and this")
				user.Strategy = schema.UserMessage
				f.Put(bustest.Item(1, "mind the gap"), user)
			}
			return nil
		})))
		if _, err := l.Run(t.Context(), "1+2?"); err != nil {
			t.Fatal(err)
		}
		same(t, "what the model read", []string{"user: 1+2?", `assistant: [c1 add {"a":1,"b":2}][c2 fail {}]`,
			`tool: c1 add 3["mind the gap"]`, "tool: c2 fail database is gone[]", "user: and this"}, talk(model.asked[1].Messages))
		same(t, "what was shown", []string{"[INJECTION] human: mind the gap", "[INJECTION] human: and this"}, shown)
		<-time.After(3 * time.Second)
		if left := f.left(); len(left) != 0 {
			t.Errorf("not acknowledged: %+v", left)
		}
	})
}

// If a query ends before the model has read a message, the message stays in the
// conversation unacknowledged. It is delivered again, and the next query reads it once.
func TestTheNextQueryReadsUnreadMessagesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fabric(t, nil)
		model := &script{turns: []schema.Message{says("done")}}
		fails := true
		l := start(t, loop.Options{Fabric: f.client, Model: loop.ModelFunc(func(ctx context.Context, r *loop.Request) (schema.Message, error) {
			if fails {
				return schema.Message{}, context.DeadlineExceeded
			}
			return model.Call(ctx, r)
		})})
		f.Put(bustest.Item(1, "mind the gap"))
		if _, err := l.Run(t.Context(), "one"); err == nil {
			t.Fatal("the model did not fail")
		}
		<-time.After(time.Minute)
		if len(f.left()) != 1 {
			t.Fatal("acknowledged although no model read it")
		}
		fails = false
		if _, err := l.Run(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}
		same(t, "conversation", []string{"user: one", "user: mind the gap", "user: two", "assistant: done"}, talk(l.History()))
		<-time.After(3 * time.Second)
		if left := f.left(); len(left) != 0 {
			t.Errorf("not acknowledged: %+v", left)
		}
	})
}

// Messages delay the end of a query a limited number of times, and then stay in the
// queue. In the last iteration they do not delay it.
func TestMessagesDelayTheEndALimitedNumberOfTimes(t *testing.T) {
	for name, c := range map[string]struct {
		retries, iterations, want int
	}{
		"three times by itself": {0, 0, 3},
		"once":                  {1, 0, 1},
		"never":                 {-1, 0, 0},
		"the iterations end":    {9, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n uint64
				f := fabric(t, on(schema.BeforeFinalResponse, func(_ *schema.Event, v *schema.Verdict) {
					if len(v.Injections) > 0 {
						v.Decision, v.Reason = schema.Retry, "1 message came"
					}
				}))
				l := start(t, loop.Options{Fabric: f.client, FinalRetries: c.retries, MaxIterations: c.iterations,
					Model: loop.ModelFunc(func(context.Context, *loop.Request) (schema.Message, error) {
						n++
						f.Put(bustest.Item(n, fmt.Sprint("message ", n)))
						return says(fmt.Sprint("answer ", n)), nil
					})})
				l.On(schema.AfterLLMCall).Handle(schema.Continue) // in-process hooks do not affect it
				f.Lock()
				f.OnEvent = onlyAt(f.OnEvent, schema.BeforeFinalResponse)
				f.Unlock()
				answer, err := l.Run(t.Context(), "go")
				if err != nil || answer.Content != fmt.Sprint("answer ", c.want+1) || answer.Iterations != c.want+1 {
					t.Errorf("%+v, %v", answer, err)
				}
				if left := f.left(); left[len(left)-1].Sequence != n {
					t.Errorf("the last message is gone: %+v", left)
				}
				for i := range c.want {
					if lines := talk(l.History()); !slices.Contains(lines, fmt.Sprint("user: message ", i+1)) {
						t.Errorf("message %d was not delivered: %q", i+1, lines)
					}
				}
			})
		})
	}
}

func TestARestartStartsAgainAndATerminateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once := true
		f := fabric(t, on(schema.PostToolUse, func(_ *schema.Event, v *schema.Verdict) {
			if once {
				once = false
				v.Restart = &schema.Restart{Reason: "a peer answered", Content: "agent2 says: three"}
			}
		}))
		o, model := query(f)
		o.System = "You add."
		l := start(t, o)
		answer, err := l.Run(t.Context(), "1+2?")
		if err != nil || answer.Iterations != 2 {
			t.Errorf("%+v, %v", answer, err)
		}
		same(t, "what the model was asked", []string{"system: You add.", "user: 1+2?", "user: agent2 says: three"}, talk(model.asked[1].Messages))
	})
}

// A rewrite that this program cannot read blocks where a failure can, because the
// original value must not be used.
func TestAnUnreadableRewriteBlocks(t *testing.T) {
	for at, set := range map[schema.EventType]func(v *schema.Verdict){
		schema.PreToolUse:          func(v *schema.Verdict) { v.UpdatedInput = jsontext.Value(`["rm"]`) },
		schema.AfterLLMCall:        func(v *schema.Verdict) { v.Value = jsontext.Value(`7`) },
		schema.BeforeFinalResponse: func(v *schema.Verdict) { v.Value = jsontext.Value(`7`) },
	} {
		t.Run(string(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, on(at, func(_ *schema.Event, v *schema.Verdict) { set(v) }))
				o, _ := query(f)
				l := start(t, o)
				answer, err := l.Run(t.Context(), "1+2?")
				blocked := answer.Status == loop.Failed && strings.Contains(answer.Error, "a rewrite was dropped")
				if at == schema.PreToolUse {
					blocked = err == nil && strings.Contains(talk(l.History())[2], "was denied and did not run: a rewrite was dropped: the input is")
				}
				if !blocked {
					t.Errorf("%+v, %v, %q", answer, err, talk(l.History()))
				}
			})
		})
	}
}

// An unknown decision of a newer fabric never counts as an allow.
func TestAnUnknownDecisionDoesNotAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fabric(t, on(schema.PreToolUse, func(_ *schema.Event, v *schema.Verdict) { v.Decision = "perhaps" }))
		o, _ := query(f)
		l := start(t, o)
		answer, err := l.Run(t.Context(), "1+2?")
		if err != nil {
			t.Fatal(err)
		}
		if got := talk(l.History())[2]; !strings.Contains(got, `denied and did not run: the fabric decided "perhaps"`) {
			t.Errorf("%q; %q", got, answer.HookErrors)
		}
	})
}
