package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// leaseOver is longer than a lease, which is not renewed between two queries.
const leaseOver = time.Minute

// reads counts, per text, how often it is in one request.
func reads(r *loop.Request, texts ...string) (times []int) {
	all := strings.Join(talk(r.Messages), "\n")
	for _, text := range texts {
		times = append(times, strings.Count(all, text))
	}
	return times
}

// together are the tools add and fail, which both wait until both have started.
func together() []loop.Tool {
	begun := make(chan struct{})
	add, fail := adding(), failing()
	add.Call = func(context.Context, jsonValue) (any, error) { <-begun; return 3, nil }
	once := sync.OnceFunc(func() { close(begun) })
	fail.Call = func(ctx context.Context, _ jsonValue) (any, error) {
		once()
		<-time.After(time.Second)
		return nil, errors.New("database is gone")
	}
	return []loop.Tool{add, fail}
}

// A query ends at an event that delivered an item, in every possible way. The next
// query's model reads the item once, and only then it is acknowledged.
func TestItemsOfAnEndedQueryAreDeliveredAgain(t *testing.T) {
	deny := func(at schema.EventType) func(*loop.Loop, *bool) {
		return func(l *loop.Loop, ends *bool) {
			l.On(at).When(func(context.Context, *loop.Status) (bool, error) { return *ends, nil }).Handle(at.Blocking(), loop.WithReason("not now"))
		}
	}
	for name, c := range map[string]struct {
		at    schema.EventType
		order loop.Order
		hooks func(l *loop.Loop, ends *bool)
		// verdict changes the fabric's verdict of the query that ends.
		verdict func(v *schema.Verdict)
		// panics makes the program's callback panic at the event; beside runs both tools
		// at once.
		panics, beside bool
	}{
		"a prompt that the program refuses":   {at: schema.UserPromptSubmit, order: loop.RemoteFirst, hooks: deny(schema.UserPromptSubmit)},
		"a model call that the program fails": {at: schema.BeforeLLMCall, order: loop.RemoteFirst, hooks: deny(schema.BeforeLLMCall)},
		"an answer that the program fails":    {at: schema.AfterLLMCall, order: loop.RemoteFirst, hooks: deny(schema.AfterLLMCall)},
		"a tool call that the program fails": {at: schema.PreToolUse, order: loop.RemoteFirst, hooks: func(l *loop.Loop, ends *bool) {
			l.On(schema.PreToolUse).When(func(context.Context, *loop.Status) (bool, error) { return *ends, nil }).Reject("not now")
		}},
		"a result that the program fails": {at: schema.PostToolUse, hooks: func(l *loop.Loop, ends *bool) {
			l.On(schema.PostToolUse).When(func(context.Context, *loop.Status) (bool, error) { return *ends, nil }).Reject("not now")
		}},
		"a terminate that the program stops": {at: schema.BeforeLLMCall, order: loop.RemoteFirst, hooks: func(l *loop.Loop, ends *bool) {
			l.On(schema.BeforeLLMCall).When(func(context.Context, *loop.Status) (bool, error) { return *ends, nil }).Handle(schema.Stop, loop.WithValue(says("cached")))
		}, verdict: func(v *schema.Verdict) { v.Terminate = &schema.Terminate{Reason: "time is up"} }},
		"a panic at a tool call":   {at: schema.PreToolUse, panics: true},
		"a panic before the model": {at: schema.BeforeLLMCall, panics: true},
		"a restart beside a call that ends the query": {at: schema.PostToolUse, hooks: func(l *loop.Loop, ends *bool) {
			l.On(schema.ToolError).When(func(context.Context, *loop.Status) (bool, error) { return *ends, nil }).Reject("not now")
		}, verdict: func(v *schema.Verdict) { v.Restart = &schema.Restart{Reason: "a peer answered"} }, beside: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ends := true
				f := fabric(t, on(c.at, func(_ *schema.Event, v *schema.Verdict) {
					if ends && c.verdict != nil {
						c.verdict(v)
					}
				}))
				f.OnEvent = onlyAt(f.OnEvent, c.at)
				o, model := query(f)
				model.turns = slices.Concat(model.turns, model.turns)
				o.Order, o.Parallel = c.order, 1
				o.Verdict = func(e *schema.Event, _ *schema.Verdict) {
					if ends && c.panics && e.HookType == c.at {
						panic("a bug")
					}
				}
				if c.beside {
					o.Parallel, o.Tools = 2, together()
				}
				var last *loop.Request
				o.Model = loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
					last = r
					if ends || r.Iteration == 1 {
						return model.turns[0], nil
					}
					return says("done"), nil
				})
				l := start(t, o)
				if c.hooks != nil {
					c.hooks(l, &ends)
				}
				f.Put(bustest.Item(1, "mind the gap"))
				if answer, err := l.Run(t.Context(), "one"); err == nil {
					t.Fatalf("the query did not end there: %+v", answer)
				}
				<-time.After(leaseOver)
				if len(f.left()) != 1 {
					t.Fatal("acknowledged although no model has read it")
				}
				ends = false
				answer, err := l.Run(t.Context(), "two")
				if err != nil {
					t.Fatalf("%+v, %v", answer, err)
				}
				same(t, "what the last model call had of it", []int{1}, reads(last, "mind the gap"))
				<-time.After(3 * time.Second)
				same(t, "what waits", 0, len(f.left()))
			})
		})
	}
}

// A new conversation gets items that no model has read.
func TestANewConversationGetsUnreadItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fabric(t, nil)
		fails := true
		var last *loop.Request
		l := start(t, loop.Options{Fabric: f.client, Model: loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
			last = r
			if fails {
				return schema.Message{}, errors.New("overloaded")
			}
			return says("done"), nil
		})})
		f.Put(bustest.Item(1, "mind the gap"))
		for range 3 { // it is delivered each time, and is in the conversation once
			if _, err := l.Run(t.Context(), "one"); err == nil {
				t.Fatal("the model did not fail")
			}
			same(t, "what it would have read", []int{1}, reads(last, "mind the gap"))
			<-time.After(leaseOver)
		}
		if err := l.NewConversation(); err != nil || len(f.left()) != 1 {
			t.Fatalf("%v; %d wait", err, len(f.left()))
		}
		fails = false
		if _, err := l.Run(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}
		same(t, "what it read", []string{"user: two", "user: mind the gap"}, talk(last.Messages))
		<-time.After(3 * time.Second)
		same(t, "what waits", 0, len(f.left()))
	})
}

// Another fabric also counts items from 1, and a text that could not be fetched is
// delivered again under its number. Neither counts as already in the conversation.
func TestAnEqualNumberCanBeAnotherItem(t *testing.T) {
	for name, change := range map[string]func(f *far){
		"another fabric": func(f *far) {
			f.ID, f.Items = "another", []schema.Injection{bustest.Item(1, "of the other")}
			clear(f.Leases)
		},
		"a text that can be fetched now": func(f *far) { f.Answer = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fabric(t, nil)
				fails := true
				var last *loop.Request
				l := start(t, loop.Options{Fabric: f.client, EventTimeout: 4 * time.Second, Model: loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
					last = r
					if fails {
						return schema.Message{}, errors.New("overloaded")
					}
					return says("done"), nil
				})})
				item := bustest.Item(1, "of the one")
				if name != "another fabric" {
					item.Content, item.Object = "", f.Object("of the other")
					f.Answer = func(verb string, m *nats.Msg) bool {
						if verb == schema.VerbFetch {
							bustest.Refuse(m, schema.CodeNotFound, "it is not there yet")
						}
						return verb == schema.VerbFetch
					}
				}
				f.Put(item)
				if _, err := l.Run(t.Context(), "one"); err == nil {
					t.Fatal("the model did not fail")
				}
				<-time.After(leaseOver)
				f.Lock()
				change(f)
				f.Unlock()
				fails = false
				if _, err := l.Run(t.Context(), "two"); err != nil {
					t.Fatal(err)
				}
				same(t, "what it read", []int{1}, reads(last, "of the other"))
				<-time.After(3 * time.Second)
				same(t, "what waits", 0, len(f.left()))
			})
		})
	}
}

// steered are the events at which a verdict may have a restart or a terminate, in the
// order of a query with a tool that works and one that fails.
func steered() []schema.EventType {
	return append([]schema.EventType{schema.UserPromptSubmit}, moments()...)
}

// A terminate ends the query at every event, with any decision of the program's hooks. At
// QueryEnd it is only recorded.
func TestATerminateEndsTheQueryAtEachEvent(t *testing.T) {
	for _, at := range steered() {
		for _, order := range []loop.Order{loop.InProcessFirst, loop.RemoteFirst} {
			t.Run(fmt.Sprint(at, " ", order), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := fabric(t, on(at, func(_ *schema.Event, v *schema.Verdict) { v.Terminate = &schema.Terminate{Reason: "time is up"} }))
					o, _ := query(f)
					o.Order = order
					l := start(t, o)
					var heard ends
					heard.watch(l)
					if order == loop.RemoteFirst && at.Permits(schema.Stop) && at.StopValue() == schema.MessageValue {
						l.On(at).Handle(schema.Stop, loop.WithValue(says("cached")))
					}
					answer, err := l.Run(t.Context(), "1+2?")
					if at == schema.QueryEnd {
						if err != nil || answer.Status != loop.Answered || !strings.Contains(strings.Join(answer.HookErrors, "\n"), "time is up") {
							t.Errorf("%+v, %v", answer, err)
						}
					} else if !errors.Is(err, loop.ErrTerminated) || answer.Status != loop.Terminated || answer.Reason != "time is up" {
						t.Errorf("%+v, %v", answer, err)
					}
					heard.check(t, f, answer)
					sound(t, l.History())
				})
			})
		}
	}
}

// A restart starts the turn again at every event except QueryEnd.
func TestARestartStartsTheTurnAgainAtEachEvent(t *testing.T) {
	for _, at := range steered() {
		t.Run(string(at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				once := true
				f := fabric(t, on(at, func(_ *schema.Event, v *schema.Verdict) {
					if once {
						once = false
						v.Restart = &schema.Restart{Reason: "a peer answered", Content: "agent2 says: three"}
					}
				}))
				o, model := query(f)
				asks, ran := []string{}, 0
				o.System = "You add."
				o.Model = loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
					asks = append(asks, strings.Join(talk(r.Messages), "; "))
					if reads(r, "agent2")[0] > 0 && len(r.Messages) == 3 {
						ran++
						return says("four"), nil
					}
					return model.turns[min(r.Iteration, 2)-1], nil
				})
				l := start(t, o)
				answer, err := l.Run(t.Context(), "1+2?")
				if err != nil {
					t.Fatal(err)
				}
				want, again := "four", "system: You add.; user: 1+2?; user: agent2 says: three"
				if at == schema.QueryEnd {
					want, again = "three", ""
				}
				if answer.Content != want || again != "" && (asks[len(asks)-1] != again || ran != 1) {
					t.Errorf("%+v after %q", answer, asks)
				}
				sound(t, l.History())
			})
		})
	}
}
